/** Imports point one way: the table of the house in docs/design.md, enforced. */
const folder = (name) => `^src/${name}/`
const only = (name, allowed) => ({
  name: `${name}-imports-only-${allowed.join('-') || 'itself'}`,
  severity: 'error',
  from: { path: folder(name), pathNot: '\\.test\\.ts$' },
  to: {
    path: '^(src|scripts|test|bench|prove)/',
    pathNot: [folder(name), ...allowed.map((each) => `^src/${each}`)],
  },
})
const core = ['payout/', 'platform/', 'gateway/', 'ledger/']

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'product-without-its-prover',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^prove/' },
    },
    only('payout', ['platform/text\\.ts$']),
    only('platform', []),
    only('gateway', ['payout/', 'platform/']),
    only('ledger', ['payout/', 'platform/']),
    only('intake', core),
    only('dispatch', core),
    only('settlement', core),
    only('payins', core),
    only('batches', core),
    only('operations', core),
    only('reconcile', [...core, 'oracle/compare', 'batches/(records|rupees)', 'operations/times']),
    only('recovery', [...core, 'reconcile/ask-each\\.ts$']),
    only('relay', ['ledger/', 'platform/']),
    only('config', ['payout/', 'platform/', 'gateway/']),
    only('sandbox', ['platform/(http|lifecycle|clock|log)\\.ts$']),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.js', '.mjs', '.cjs'] },
  },
}
