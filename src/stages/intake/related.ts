/** Groups of items of which each has a subject in common with another one of its group, if not with all of them. */
export function related<Item>(
  items: readonly Item[],
  subjectsOf: (item: Item) => readonly string[],
): readonly Item[][] {
  type Group = { items: Item[]; subjects: string[] }
  const groupOf = new Map<string, Group>()
  const all = new Set<Group>()
  for (const item of items) {
    const subjects = subjectsOf(item)
    const found = new Set(subjects.flatMap((subject) => groupOf.get(subject) ?? []))
    const own: Group = { items: [item], subjects: [...subjects] }
    const [largest = own, ...others] = [...found, own].sort((a, b) => b.items.length - a.items.length)
    for (const { items, subjects } of others) {
      largest.items.push(...items)
      largest.subjects.push(...subjects)
      for (const subject of subjects) groupOf.set(subject, largest)
    }
    for (const subject of subjects) groupOf.set(subject, largest)
    for (const group of others) all.delete(group)
    all.add(largest)
  }
  return [...all].map(({ items }) => items)
}
