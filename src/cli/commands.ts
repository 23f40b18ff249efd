import { run } from './failure.ts'
import { program } from './program.ts'

await run(program)
