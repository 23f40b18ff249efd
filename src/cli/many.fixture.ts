import { wholeProgram } from '../../bin/program.ts'
import { run } from './failure.ts'

/** Runs one payoutd command after another for its parent, and writes a mark to both output streams when each has ended. */
const END = process.argv[2]

const program = await wholeProgram()

type CommandRequest = { args: readonly string[]; env: NodeJS.ProcessEnv }

process.on('message', async ({ args, env }: CommandRequest) => {
  process.env = env
  process.exitCode = undefined
  await run(program, ['node', 'payoutd', ...args])
  end(String(process.exitCode ?? 0))
})
// Some commands end the process, for example on wrong options.
process.on('exit', (code) => end(`${code} and all`))

function end(how: string): void {
  process.stderr.write(`${END}${how}\n`)
  process.stdout.write(`${END}${how}\n`)
}
