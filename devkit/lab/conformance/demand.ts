/** What the server did is not what the contract says. Also thrown where there was no answer at all. */
export class Differs extends Error {}

/** The server could not be asked, and why. */
export class NotTried extends Error {}

/** Throws Differs with what was seen instead, unless it holds. */
export function demand(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Differs(otherwise)
}
