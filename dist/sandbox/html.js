/** HTML from a template: every value is escaped, except what is HTML already. `undefined` is nothing. */
export function html(texts, ...parts) {
    return { html: texts.reduce((all, text, i) => `${all}${written(parts[i - 1])}${text}`) };
}
function written(part) {
    if (part === undefined)
        return '';
    if (typeof part !== 'object')
        return escaped(String(part));
    return 'html' in part ? part.html : part.map((each) => each.html).join('');
}
const ENTITIES = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
};
const escaped = (text) => text.replace(/[&<>"']/g, (letter) => ENTITIES[letter] ?? '');
