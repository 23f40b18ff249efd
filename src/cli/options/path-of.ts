import path from 'node:path'

/**
 * The path of a file that a person named, from the person's folder: `npm run` starts our scripts in payoutd's folder, and
 * INIT_CWD has the folder in which it was called.
 */
export function pathOf(given: string): string {
  const { npm_package_name, INIT_CWD } = process.env
  return npm_package_name === 'payoutd' && INIT_CWD ? path.resolve(INIT_CWD, given) : given
}
