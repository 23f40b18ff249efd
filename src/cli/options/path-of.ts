import path from 'node:path'

/**
 * The path of a file that a person named, from the folder in which he is: `npm run` starts a script of ours in the
 * folder of payoutd, and says in INIT_CWD where it was called.
 */
export function pathOf(given: string): string {
  const { npm_package_name, INIT_CWD } = process.env
  return npm_package_name === 'payoutd' && INIT_CWD ? path.resolve(INIT_CWD, given) : given
}
