/** A task that cannot do what it was asked to do. The message is for people and says what to do. */
export class ExpectedFailure extends Error {}
