/** The parameters of a request without those that are not given: a program without types may leave one out. */
export const params = (entries) => new Map(entries.filter((entry) => (entry[1] ?? null) !== null));
/** Puts parameters, the signature among them, where the dialect wants them. */
export function encode(all, path, body) {
    switch (body) {
        case 'form':
            return { path, contentType: 'application/x-www-form-urlencoded', body: urlEncode(all) };
        case 'json':
            return { path, contentType: 'application/json', body: jsonEncode(all) };
        case 'query':
            return { path: `${path}?${urlEncode(all)}`, contentType: 'application/x-www-form-urlencoded', body: '' };
    }
}
/** A space becomes %20 and not "+": every decoder reads it as a space. */
function urlEncode(all) {
    let text = '';
    for (const [name, value] of all) {
        text += `${text === '' ? '' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`;
    }
    return text;
}
/** Written by hand because JSON.stringify knows no bigint. */
const jsonEncode = (all) => `{${[...all].map(([name, value]) => `${JSON.stringify(name)}:${typeof value === 'string' ? JSON.stringify(value) : value}`).join(',')}}`;
