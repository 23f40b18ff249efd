/** Text that is HTML already. */
export type Html = { readonly html: string }

type Part = string | number | Html | readonly Html[] | undefined

/** HTML from a template: every value is escaped, except what is HTML already. `undefined` is nothing. */
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

const escaped = (text: string): string => text.replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? '')
