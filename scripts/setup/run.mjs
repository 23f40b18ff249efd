import { spawn } from 'node:child_process'

/**
 * Runs one slow program under a line that says what it is for and how long it has taken. Its output is shown
 * only when it fails, and then all of it. Rejects with an error whose message is for the user.
 *
 * `children` learns the process, so that the next set-up knows about one that outlived this one.
 */
export async function run(what, file, args, { cwd, children }) {
  const began = performance.now()
  const seconds = () => `${Math.round((performance.now() - began) / 1000)} s`
  const live = process.stderr.isTTY
  const show = live ? () => process.stderr.write(`\r${what} … ${seconds()}`) : () => undefined
  process.stderr.write(live ? `${what} …` : `${what} …\n`)
  const ticking = setInterval(show, 1_000)
  try {
    const { code, output } = await finish(file, args, cwd, children)
    if (code !== 0)
      throw new Error(`${output}\n${file} failed (${code}). Once the cause is gone, start again.`)
  } finally {
    clearInterval(ticking)
    if (live) process.stderr.write(`\r${what} … ${seconds()}\n`)
  }
}

function finish(file, args, cwd, children) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    const forget = children.add(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (text) => {
        output += text
      })
    }
    child.once('error', reject)
    child.once('close', (code, signal) => {
      forget()
      resolve({ code: code ?? signal, output })
    })
  })
}
