import { InvalidArgumentError } from 'commander'

/** A `--rate`, per second. */
export function rateOf(text: string): number {
  const [, count] = /^([1-9]\d{0,3})(?:\/s)?$/.exec(text) ?? []
  if (count === undefined)
    throw new InvalidArgumentError('It must be a whole number from 1 to 9999, as in 20/s.')
  return Number(count)
}
