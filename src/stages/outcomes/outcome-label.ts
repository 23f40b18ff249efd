/** The name of a decision's outcome in metrics: the end that was reached, `anomaly`, another state, or `absorbed`. */
export function outcomeLabel<State extends string>(
  decision: object,
  isEnd: (state: State) => boolean,
): string {
  const moved = movedTo<State>(decision)
  if ('anomaly' in decision) return moved !== null && isEnd(moved) ? moved : 'anomaly'
  return moved ?? 'absorbed'
}

type Changed<State> = { change: { before: { version: number }; after: { version: number; state: State } } }

function movedTo<State>(decision: object): State | null {
  if (!('change' in decision)) return null
  const { before, after } = (decision as Changed<State>).change
  return after.version > before.version ? after.state : null
}
