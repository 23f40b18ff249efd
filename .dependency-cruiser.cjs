/**
 * Imports point one way: down this list (ARCHITECTURE.md). A folder may import what stands here behind its name, and nothing
 * else of the tree; tests and fixtures may import anything.
 */
const HOUSE = {
  text: [],
  platform: ['text'],
  domain: ['text'],
  gateway: ['domain', 'platform', 'text'],
  messages: ['domain', 'platform', 'text'],
  ledger: ['messages', 'domain', 'platform', 'text'],
  config: ['gateway', 'domain', 'platform', 'text'],
  'stages/intake': ['ledger', 'messages', 'domain', 'platform', 'text'],
  'stages/dispatch': ['gateway', 'ledger', 'messages', 'domain', 'platform', 'text'],
  'stages/outcomes': ['gateway', 'ledger', 'messages', 'domain', 'platform', 'text'],
  'stages/relay': ['ledger', 'platform'],
  payins: ['stages/outcomes', 'gateway', 'ledger', 'messages', 'domain', 'platform', 'text'],
  batches: ['ledger', 'messages', 'domain', 'platform', 'text'],
  queries: ['gateway', 'ledger', 'messages', 'domain', 'platform', 'text'],
  operators: ['queries', 'payins', 'batches', 'gateway', 'ledger', 'messages', 'domain', 'platform', 'text'],
  http: ['queries', 'payins', 'domain', 'platform', 'text'],
  views: [
    'operators',
    'queries',
    'payins',
    'stages/intake',
    'gateway',
    'ledger',
    'domain',
    'platform',
    'text',
  ],
  doctor: ['views', 'operators', 'queries', 'gateway', 'ledger', 'messages', 'domain', 'platform', 'text'],
}

const TREE = '^(bin|src|devkit|prove|bench|test|scripts)/'
const product = Object.keys(HOUSE).map((folder) => `^src/${folder}/`)
const isTest = '(\\.test|\\.fixture|/testing|/testing-certificate)\\.ts$'

const only = (folder, allowed) => ({
  name: `${folder.replace('/', '-')}-imports-only-what-is-below-it`,
  severity: 'error',
  from: { path: `^src/${folder}/`, pathNot: isTest },
  to: { path: TREE, pathNot: [folder, ...allowed].map((each) => `^src/${each}/`) },
})

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...Object.entries(HOUSE).map(([folder, allowed]) => only(folder, allowed)),
    {
      name: 'every-folder-has-a-rule',
      severity: 'error',
      from: { path: '^src/', pathNot: [...product, '^src/(app|cli)/', isTest] },
      to: {},
    },
    {
      name: 'app-imports-no-command',
      severity: 'error',
      from: { path: '^src/app/', pathNot: isTest },
      to: { path: '^(bin|devkit|prove|bench|test|scripts|src/cli)/' },
    },
    {
      name: 'the-product-stands-alone',
      severity: 'error',
      from: { path: '^src/', pathNot: isTest },
      to: { path: '^(bin|devkit|prove|bench|test|scripts)/' },
    },
    {
      name: 'the-sandbox-is-no-copy-of-the-client',
      severity: 'error',
      from: { path: '^devkit/sandbox/', pathNot: isTest },
      to: { path: TREE, pathNot: ['^devkit/sandbox/', '^src/platform/'] },
    },
    {
      name: 'what-judges-stands-above',
      severity: 'error',
      from: { path: '^devkit/', pathNot: isTest },
      to: { path: '^(bin|prove|bench|test|scripts)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.js', '.mjs', '.cjs'] },
  },
}
