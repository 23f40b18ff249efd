/** The server did not do what the contract says. Also thrown if there was no answer at all. */
export class Differs extends Error {}

/** The case could not be tried, and why. */
export class NotTried extends Error {}

/** Throws Differs with what was seen instead, unless `holds`. */
export function demand(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Differs(otherwise)
}
