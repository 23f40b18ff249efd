import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Row } from './matrix.ts'
import { type MutationFigures, type MutationResult, together } from './mutation/mutation-figures.ts'
import { type SimulationResult, simulationResult, type Whole, type Without } from './simulation/results.ts'
import { UNSEEN } from './simulation/unseen.ts'

const root = path.resolve(import.meta.dirname, '..')
const results = path.join(root, 'prove', 'results')
const mutationFile = path.join(results, 'mutation.json')
const OTHERS = ['mutation.json', 'simulation.json']

/** The latest full run of one section. */
type Result = { section: string; ranAt: string; seconds: number; node: string; rows: KeptRow[] }

/** A row as stored. Older rows lack these figures; their names show what their gateway did. */
type KeptRow = Omit<Row, 'inReview' | 'paysTwice'> & Partial<Pick<Row, 'inReview' | 'paysTwice'>>

const paidTwiceThere = ({ name, paysTwice }: KeptRow): boolean =>
  paysTwice ?? name.includes('at a gateway that pays twice')

/** Stores a section's raw rows, in place of those of its last run. */
export function keepResult(section: string, rows: Row[], seconds: number): void {
  mkdirSync(results, { recursive: true })
  const result: Result = { section, ranAt: new Date().toISOString(), seconds, node: process.version, rows }
  writeFileSync(path.join(results, `${section}.json`), `${JSON.stringify(result, null, 2)}\n`)
}

/** Stores the tests' results for a group's mutants, in place of the last ones. */
export function keepMutation(result: MutationResult): void {
  const others = mutationResults().filter(({ group }) => group !== result.group)
  const all = [...others, result].sort((a, b) => a.group.localeCompare(b.group))
  writeFileSync(mutationFile, `${JSON.stringify(all, null, 2)}\n`)
}

const mutationResults = (): MutationResult[] =>
  existsSync(mutationFile) ? JSON.parse(readFileSync(mutationFile, 'utf8')) : []

/** Writes docs/proof.md from the raw rows of every section and the figures of the mutants. */
export function writeProof(): void {
  const all = readdirSync(results)
    .filter((file) => file.endsWith('.json') && !OTHERS.includes(file))
    .map((file) => path.join(results, file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as Result)
    .sort((a, b) => a.section.localeCompare(b.section))
  writeFileSync(
    path.join(root, 'docs', 'proof.md'),
    [proof(all), simulation(simulationResult()), mutation(mutationResults())].join('\n'),
  )
}

/** The text of docs/proof.md about these results. */
export function proof(all: readonly Result[]): string {
  const rows = all.flatMap(({ rows }) => rows)
  const matrix = rows.filter(({ caughtBy }) => caughtBy === undefined)
  const without = rows.filter(({ caughtBy }) => caughtBy !== undefined)
  const [twice, refusing] = [matrix.filter(paidTwiceThere), matrix.filter((row) => !paidTwiceThere(row))]
  return `${HEAD}
${readFileSync(path.join(root, 'prove', 'readers.md'), 'utf8')}
## The matrix

${headline(twice)}

${table(
  ['what goes wrong', 'runs', 'faults', 'payouts', 'paid twice', 'lost', 'lied', 'other', 'in review'],
  [
    ...twice.map(figures),
    total('at a gateway that pays one number twice', twice),
    ...refusing.map(figures),
    ...(refusing.length > 0 ? [total('at a gateway that refuses duplicates', refusing)] : []),
  ],
)}
${notes(matrix)}
## Without each safeguard

A matrix that could not fail would prove nothing. Here payoutd is put together without one of its safeguards
(\`src/app/safeguards.ts\`, \`prove/without/\`), and the matrix has to tell.

${table(
  ['left out', 'so that', 'told by', 'paid twice', 'lost', 'lied', 'other'],
  without.map(({ name, note, caughtBy, paidTwice, lost, lied, other }) => [
    name,
    note,
    caughtBy?.join(', ') || '**nothing**',
    ...[paidTwice, lost, lied, other].map(String),
  ]),
)}
## When

${table(
  ['section', 'ran at', 'took', 'Node'],
  all.map(({ section, ranAt, seconds, node }) => [section, minute(ranAt), `${seconds} s`, node]),
)}`
}

function simulation({ whole, without }: SimulationResult): string {
  return `## Simulation

\`npm run prove:simulation\` runs payoutd's own stages, statements and gateway client in one process on a simulated
world: clock, gateway, Kafka and every order of events come from one number, the seed
([decision 6](decisions/0006-the-simulation-runs-the-product.md)). In its stories processes crash and freeze,
connections break, another database server takes over without the last commits and a person recovers, gateway accounts
change, gateways hang, forget, pay twice and give back, balances run short, and people pause, cancel, release and
resolve. An oracle holds ledger, messages and the gateway's own books against each other.

${simulated(whole)}

${without ? `Without each safeguard, the first story that tells, of at most ${without.seeds}:\n\n${toldTable(without)}` : ''}
What the simulation cannot tell is told by the stories on real servers above:

${table(['left out', 'because'], Object.entries(UNSEEN))}
${table(
  ['run', 'seeds', 'ran at', 'commit', 'took', 'Node'],
  [
    ...whole.map((run) => ranAs('payoutd whole', run)),
    ...(without ? [ranAs('without each safeguard', without)] : []),
  ],
)}`
}

function ranAs(what: string, { from, seeds, ranAt, commit, seconds, node }: Whole | Without): string[] {
  return [what, `${from} to ${from + seeds - 1}`, minute(ranAt), commit, `${seconds} s`, node]
}

function simulated(runs: readonly Whole[]): string {
  const sum = (of: 'seeds' | 'steps' | 'payouts') => runs.reduce((all, run) => all + run[of], 0)
  const failures = runs.flatMap((run) => run.failures)
  const broken = failures.map(({ seed, detail }) => `\n- seed ${seed}: ${detail.split('\n')[0]}`).join('')
  return (
    `${sum('seeds')} stories in the runs below, ${sum('steps')} steps, ${sum('payouts')} commands, ` +
    `**${failures.length} broken**.${broken}`
  )
}

const toldTable = ({ told }: Without): string =>
  table(
    ['left out', 'so that', 'told by seed', 'what it broke'],
    told.map(({ without, about, seed, broken }) => [
      without,
      about,
      seed === null ? '**none**' : String(seed),
      broken ?? '',
    ]),
  )

function mutation(groups: readonly MutationResult[]): string {
  const row = ({ file, mutants, killed, timeout, survived, score }: MutationFigures): string[] => [
    file,
    ...[mutants, killed, timeout, survived, score].map(String),
  ]
  return `## Mutation

A test that passes whatever the code says proves nothing either. \`npm run prove:mutation\` breaks the code in every
small way that Stryker knows, one at a time, and runs the tests that need no servers. What they do not notice survives;
at least 95 % of each group must be found out.

${table(
  ['file', 'mutants', 'killed', 'timeout', 'survived', '%'],
  groups.flatMap(({ group, files }) => [...files.map(row), row(together(`**${group}**`, files))]),
)}
${table(
  ['group', 'ran at', 'took', 'Node'],
  groups.map(({ group, ranAt, seconds, node }) => [group, minute(ranAt), `${seconds} s`, node]),
)}`
}

const minute = (ranAt: string): string => ranAt.slice(0, 16).replace('T', ' ')

const figures = ({
  name,
  runs,
  faults,
  payouts,
  paidTwice,
  lost,
  lied,
  other,
  inReview,
}: KeptRow): string[] => [
  name,
  ...[runs, faults, payouts, paidTwice, lost, lied, other, inReview].map(asCell),
]

/** A sum with an uncounted figure is unknown. */
const NOT_COUNTED = '–'
const asCell = (count: number | undefined): string => (count === undefined ? NOT_COUNTED : String(count))
const sumOf = (rows: readonly KeptRow[], of: (row: KeptRow) => number | undefined): number | undefined =>
  rows.reduce<number | undefined>((all, row) => {
    const count = of(row)
    return all === undefined || count === undefined ? undefined : all + count
  }, 0)

/** Counts only rows whose gateway pays a second apply: only there can a payout be paid twice. */
function headline(rows: readonly KeptRow[]): string {
  const sum = (of: (row: KeptRow) => number | undefined) => asCell(sumOf(rows, of))
  const inReview = sumOf(rows, (row) => row.inReview)
  return (
    `${sum(({ payouts }) => payouts)} payouts at a gateway that pays one number as often as it is asked to: ` +
    `**${sum(({ paidTwice }) => paidTwice)} paid twice, ${sum(({ lost }) => lost)} lost, ` +
    `${sum(({ lied }) => lied)} lied**, ${sum(({ other }) => other)} other` +
    `${inReview === undefined ? '' : `; ${inReview} waited for a person at the end`}.`
  )
}

function total(name: string, rows: readonly KeptRow[]): string[] {
  const sum = (of: (row: KeptRow) => number | undefined) => `**${asCell(sumOf(rows, of))}**`
  return [
    `**${name}**`,
    sum(({ runs }) => runs),
    sum(({ faults }) => faults),
    sum(({ payouts }) => payouts),
    sum(({ paidTwice }) => paidTwice),
    sum(({ lost }) => lost),
    sum(({ lied }) => lied),
    sum(({ other }) => other),
    sum(({ inReview }) => inReview),
  ]
}

const notes = (rows: readonly KeptRow[]): string =>
  rows
    .filter(({ note }) => note !== '')
    .map(({ name, note }) => `- ${name}: ${note}\n`)
    .join('')

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}

const HEAD = `# Proof

Whether payoutd ever pays twice, loses a payout or lies about one is not left to a sentence. \`npm run prove\` breaks
everything that it knows to break, with real processes on a real PostgreSQL, Kafka and schema registry. Two merchants
pay in every world, at a gateway that pays one order number as often as it is asked to, unless a line says otherwise.
What became of every payout is compared with the books of the sandbox, which share no code with payoutd: how often each
payout was paid there and to whom, what payoutd's ledger says with which evidence, and what came out on
\`payout.results\`, read by a Kafka client and an Avro reader that payoutd does not use (\`devkit/oracle/\`, one named check
for each invariant of [design.md](design.md)). \`prove/outside.py\` asks it again beside \`npm run up\`, in another language:
commands and results by librdkafka, each of its codecs, and the books alone for a judge.

- **paid twice**: the gateway paid a payout more than once, over all its orders.
- **lost**: a payout that was asked for has no end, or is not in the ledger, or an order was paid that no payout owns.
- **lied**: payoutd says paid or failed, and the gateway's books say otherwise, or nobody said so; or the money went to
  another account than was asked for.
- **other**: anything else that does not fit an invariant: a gap in a history, a message that is missing, an amount, a
  payout that waits for a person although the gateway has its order.
- **in review**: payouts that wait for a person at the end, because the gateway has no such order and nobody may send it
  again unasked. A scene that is about a person's decisions may have others.

\`npm run prove -- --only crash-points\` runs one section, \`--quick\` a few runs of each kind, as CI does. A full run
keeps its raw rows in \`prove/results/\` and writes this page from them. Where the last column shows –, a section was
last run by an earlier prover, on an earlier payoutd: one merchant paid, and nobody compared whom.

## What this cannot see

- **What the sandbox does not do.** Every gateway here is our own sandbox with one dialect or another. A gateway that
  breaks its contract in a way nobody thought of is not in it.
- **A lie that is signed and comes first.** The gateway's first signed word about an end counts. Gateways that deny an end
  later are here; one that never told the truth before cannot be told from an honest one.
- **Two lies at once.** A gateway that refuses what it has accepted, or says "later" to it, is here, and one whose queries do not
  find what it has for less than the grace. Both about one order, beyond the grace, are not: payoutd would call the payout failed, or
  send it again. So may a proxy that gives each request the answer of another, for as long as payoutd sees no answer that names one:
  the fiftieth round tried that with a program of its own, and most of all an account without any order yet has nothing to notice it by.
- **All pairs of crashes.** Each crash point is tried alone, some pairs are drawn at random (\`crash-chains\`).
- **Time.** Grace, lease and deadlines are seconds here and minutes or days in production. Nothing runs for longer than
  the soak.
- **Other versions.** One PostgreSQL, one Kafka, one registry, one Node, one machine: no network between them but
  loopback, wires that delay and cut, and no disk that lies about what it wrote.
- **A former primary that is back as it was.** If it is started again in its own timeline, and so is every process of
  payoutd, its ledger fits to its server, and nothing that was sent and paid by its successor shows in it.
- **A database that was set back in place.** A copy in the same server, or a dump loaded into another database, shows by its OID. A
  disk snapshot, or a dump whose tables replace those of the ledger in its own database, does not: payoutd notices only by commands
  that the ledger has forgotten, or by evidence that it does not know.
- **Upstreams that share a partition.** Who may write commands in transactions can hold up those of others in the same
  partition for as long as the brokers let a transaction stay open: what was not committed is never paid.
- **Bits that turn in the memory of a broker or a proxy.** TCP finds a bit that turns on a wire, and payoutd compares the checksums
  of batches, which disks keep, too. The rest of Kafka's answers has none, nor have requests: where a log begins and ends, how far
  a group has read, what was aborted, what may be read. There such a bit can hide commands or results, or show what was not
  committed. Memory that corrects errors prevents it.
- **Pages that the disk does not give back.** Some statements are about all merchants, so one page that PostgreSQL cannot read can stop
  intake, dispatch, outcomes or relay for everybody, visibly, until it is repaired or restored. Nothing that fails so becomes a dead letter.
- **A network that loses large packets alone.** A relay that reaches Kafka only with small requests keeps what it publishes for everybody,
  visibly (\`payoutd_outbox_oldest_seconds\`, \`doctor\`), until somebody stops it.
- **A registry that loses its data while payoutd runs.** Only a start, a migration and \`doctor\` compare its ids. Until then messages are
  written under the former ones, and commands under ids given anew may become dead letters.
- **People.** Whoever confirms falsely that the gateway does not have an order can have it paid twice.
- **What a file means.** payoutd holds what looks like the same payment again: the same amount to the same account or
  beneficiaryId in one pay period, or the same file. It cannot know that a corrected amount, another month, an account that moved with
  its bank to another one, or another file for another merchant is the same salary.
- **Size.** Worlds hold some hundred payouts, the soak a million. What happens at ten million is measured elsewhere, and
  is not judged payout by payout.
`
