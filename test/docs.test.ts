import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { Command, Option } from 'commander'
import { wholeProgram } from '../bin/program.ts'
import { demoCommand } from '../devkit/local/demo.ts'
import { upCommand } from '../devkit/local/up.ts'
import packageJson from '../package.json' with { type: 'json' }
import { codeLines, GUIDES, root, wordsOf } from './command-lines.ts'

const program = await wholeProgram()

const ALL = [...new Set([...GUIDES, ...globSync('{docs,devkit,src}/**/*.md', { cwd: root })])]
const scripts: Record<string, string> = packageJson.scripts

/** The command that an npm script starts with the words after `--`. */
const STARTED_BY: Record<string, Command | undefined> = {
  payoutd: program,
  ingest: program.commands.find((each) => each.name() === 'ingest'),
  demo: demoCommand,
  up: upCommand,
}

/**
 * What is wrong with a command line, or null. Does not run the command. After a lone `…` anything may follow, and
 * required parts may be missing.
 */
function faultOf(text: string): string | null {
  const [first, ...words] = wordsOf(text)
  if (first === 'payoutd') return commandFault(program, words)
  if (first === 'docker') {
    const runs = words[0] === 'run' || (words[0] === 'compose' && words[1] === 'run')
    const inside = words.slice(words.indexOf('payoutd') + 1)
    return runs && inside.length > 0 ? commandFault(program, inside) : null
  }
  if (first !== 'npm' || words[0] !== 'run') return null
  const [, script, dashes, ...rest] = words
  if (script === undefined || !Object.hasOwn(scripts, script)) return `there is no npm script ${script}`
  const started = STARTED_BY[script]
  if (started) return commandFault(started, rest)
  return dashes === undefined || dashes === '--' ? null : `arguments of npm run ${script} come after --`
}

function commandFault(command: Command, words: readonly string[]): string | null {
  const [word, ...rest] = words
  if (word === '--help') return null
  if (command.commands.length > 0) {
    const next = command.commands.find((each) => each.name() === word)
    return next ? commandFault(next, rest) : `${pathOf(command)} has no command ${word}`
  }
  const operands: string[] = []
  const missing = new Set(command.options.filter((each) => each.mandatory).map((each) => each.long))
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string
    if (word === '…') return null
    if (!word.startsWith('-')) {
      operands.push(word)
      continue
    }
    const option = command.options.find((each) => each.long === word)
    if (!option) return `${pathOf(command)} has no option ${word}`
    missing.delete(word)
    if (!option.required) continue
    const values = words.slice(i + 1, option.variadic ? undefined : i + 2)
    const next = values.findIndex((value) => value.startsWith('-'))
    const own = next < 0 ? values : values.slice(0, next)
    const fault = own.length === 0 ? 'no value' : own.map((value) => valueFault(option, value)).find(Boolean)
    if (fault) return `${pathOf(command)} ${word}: ${fault}`
    i += own.length
  }
  if (missing.size > 0) return `${pathOf(command)} needs ${[...missing].join(', ')}`
  const wanted = command.registeredArguments.filter((each) => each.required).length
  const most = command.registeredArguments.some((each) => each.variadic)
    ? Number.POSITIVE_INFINITY
    : command.registeredArguments.length
  const { length } = operands
  return wanted <= length && length <= most ? null : `${pathOf(command)} does not take ${length} arguments`
}

/** A placeholder value such as `<id>` or `…` has no fault. */
function valueFault(option: Option, quoted: string): string | null {
  const value = quoted.replace(/^(["'])(.*)\1$/, '$2')
  if (/^<.*>$|…/.test(value)) return null
  try {
    option.parseArg?.(value, undefined)
    return null
  } catch (error) {
    return `${value}: ${error instanceof Error ? error.message : error}`
  }
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

const faultsIn = (file: string, text: string): string[] =>
  codeLines(file, text).flatMap(({ at, text: line }) => {
    const fault = faultOf(line)
    return fault === null ? [] : [`${at}: ${fault}`]
  })

test('every command line of the documents is one that payoutd understands', () => {
  const found = ALL.flatMap((file) => faultsIn(file, readFileSync(path.join(root, file), 'utf8')))
  assert.deepEqual(found, [], found.join('\n'))
})

/** In a sentence a command may appear without its required parts. */
test('every command and option named in a sentence of the guides exists', () => {
  const found = GUIDES.flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
    const spans = [...text.matchAll(/`((?:payoutd|npm run) [^`]+)`/g)].map(([, span]) => span as string)
    return spans.flatMap((span) => {
      const fault = faultOf(span)
      return fault && /has no (option|command (?!undefined))|no npm script/.test(fault)
        ? [`${file}: ${fault}`]
        : []
    })
  })
  assert.deepEqual(found, [], found.join('\n'))
})

test('a missing command, option, argument or script is reported with its file and line', () => {
  const text = [
    '```',
    'npm run payoutd -- payout lists',
    'payoutd payout list --stat held   # a misspelt option',
    'payoutd payout resolve p1 \\',
    '  --paid --utr 1 --bye asha',
    'payoutd payout show',
    'npm run ingest -- salary.csv --batch a --dryrun',
    'npm run tests',
    'payoutd serve --roles settlement',
    'payoutd pause acme --by asha',
    'payoutd payout list --state held failed --json | jq . # fine, as are the next',
    'payoutd payout release <id> --by … --reason "… and so on"',
    '```',
    'payoutd nonsense, outside of a fence',
  ].join('\n')
  assert.deepEqual(faultsIn('made-up.md', text), [
    'made-up.md:2: payoutd payout has no command lists',
    'made-up.md:3: payoutd payout list has no option --stat',
    'made-up.md:4: payoutd payout resolve has no option --bye',
    'made-up.md:6: payoutd payout show does not take 0 arguments',
    'made-up.md:7: payoutd ingest has no option --dryrun',
    'made-up.md:8: there is no npm script tests',
    'made-up.md:9: payoutd serve --roles: settlement: "settlement": the roles are intake, dispatch, outcomes, relay',
    'made-up.md:10: payoutd pause needs --reason',
  ])
})

test('every link of the guides leads to an existing file', () => {
  const broken = GUIDES.flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    const targets = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) => target as string)
    return targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => !existsSync(path.resolve(root, path.dirname(file), target)))
      .map((target) => `${file}: ${target}`)
  })
  assert.deepEqual(broken, [])
})

/** `name` (`path`) or `Class.name` (`path`), and every path on its own. */
const NAMED_IN = /`([A-Za-z_.]+)` \(`((?:src|devkit|bin|prove|test|scripts)\/[\w./-]+\.ts)`\)/g
const PATH = /`((?:src|devkit|bin|prove|bench|test|scripts|schemas|dialects)\/[\w./-]+\.\w+)`/g

test('every file of ours that a document names exists, and contains what the document says', () => {
  const documents = ['ARCHITECTURE.md', 'prove/readers.md', ...ALL]
  const texts = documents.map((file) => [file, readFileSync(path.join(root, file), 'utf8')] as const)
  const gone = texts.flatMap(([file, text]) =>
    [...text.matchAll(PATH)]
      .filter(([, named = '']) => !existsSync(path.join(root, named)))
      .map(([, named]) => `${file}: ${named}`),
  )
  const elsewhere = texts.flatMap(([file, text]) =>
    [...text.matchAll(NAMED_IN)]
      .filter(([, name = '', named = '']) => {
        const code = existsSync(path.join(root, named)) ? readFileSync(path.join(root, named), 'utf8') : ''
        return !name.split('.').every((part) => new RegExp(`\\b${part}\\b`).test(code))
      })
      .map(([, name, named]) => `${file}: ${name} in ${named}`),
  )
  assert.deepEqual([gone, elsewhere], [[], []])
})

test('the list of documents names each of them', () => {
  const index = readFileSync(path.join(root, 'docs', 'index.md'), 'utf8')
  const missing = GUIDES.filter((file) => file.startsWith('docs/') && file !== 'docs/index.md').filter(
    (file) => !index.includes(`](${file.slice('docs/'.length)})`),
  )
  assert.deepEqual(missing, [])
})
