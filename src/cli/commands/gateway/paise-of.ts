import { InvalidArgumentError } from 'commander'
import { type Paise, paise } from '../../../domain/money.ts'

/** An amount of paise from the command line. Throws commander's error. */
export function paiseOf(text: string): Paise {
  if (!/^[1-9]\d{0,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of paise.')
  return paise(BigInt(text))
}
