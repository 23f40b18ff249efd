/** Text that is HTML already. */
export type Html = { readonly html: string }

type Part = string | number | Html | readonly Html[] | undefined

/** HTML from a template: escapes every value that is not HTML already. `undefined` adds nothing. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.reduce((all, text, i) => `${all}${written(parts[i - 1])}${text}`) }
}

function written(part: Part): string {
  if (part === undefined) return ''
  if (typeof part !== 'object') return escaped(String(part))
  return 'html' in part ? part.html : part.map((each) => each.html).join('')
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Control characters except line ends, and characters that change the writing direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escaped = (text: string): string =>
  text
    .replace(/[&<>"']/g, (callbackIndex) => ENTITIES[callbackIndex] ?? '')
    .replace(UNSEEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
