/** A task that cannot do what it was asked for, and why: the message is for people, and says what to do. */
export class ExpectedFailure extends Error {
}
