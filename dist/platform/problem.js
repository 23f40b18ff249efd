/** Answers with a problem; nothing in it may be a secret. */
export const sendProblem = (reply, { type, ...problem }) => reply
    .code(problem.status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: `urn:payoutd:problem:${type}`, ...problem }));
