/** The text of a header; of its first value where it was given several times. */
export function headerText(headers, name) {
    const given = headers[name];
    return (Array.isArray(given) ? given[0] : given)?.toString();
}
