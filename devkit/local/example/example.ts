import { type Expected, MAGIC, type Plant, REPEATS, WRONG } from './planted.ts'
import { Random } from './random.ts'
import { type Cells, HEADER, ordinaryRow } from './rows.ts'

/** A row of an example file. `expected` is null for an ordinary one, which is paid. */
export type ExampleRow = { cells: string[]; row: number; reference: string; expected: Expected | null }

const BLOCK = 1000
const PLANTED = WRONG.length + MAGIC.length + REPEATS.length
/** Repeats come at the end of their block, so that there are earlier rows to repeat. */
const TAIL = 200

/**
 * The rows of an example payroll of `rows` rows, the same for the same seed. Every thousand contains each planted
 * row once; a remainder of fewer than 400 rows contains only ordinary ones. `row` counts like a spreadsheet: the
 * header is row 1.
 */
export function* exampleRows(rows: number, seed: number): Generator<ExampleRow> {
  const random = new Random(seed)
  for (let from = 0; from < rows; from += BLOCK) yield* block(from, Math.min(BLOCK, rows - from), random)
}

function* block(from: number, size: number, random: Random): Generator<ExampleRow> {
  const plants = size < 2 * TAIL ? new Map<number, Plant>() : placed(size, random)
  const ordinary: Cells[] = []
  for (let i = 0; i < size; i++) {
    const plant = plants.get(i)
    const isRepeat = plant !== undefined && REPEATS.includes(plant)
    const base = isRepeat ? original(ordinary, plant, random) : ordinaryRow(from + i + 1, random)
    if (!plant) ordinary.push(base)
    const { extra, ...change } = plant?.change(base, random) ?? {}
    const cells = { ...base, ...change }
    yield {
      row: from + i + 2,
      reference: cells.reference,
      cells: [...HEADER.map((name) => cells[name]), ...(extra === undefined ? [] : [extra])],
      expected: plant?.expected ?? null,
    }
  }
}

/** The place of each planted row in a block. */
function placed(size: number, random: Random): Map<number, Plant> {
  const places = random.shuffled(Array.from({ length: size }, (_, i) => i))
  const late = places.filter((place) => place >= size - TAIL).slice(0, REPEATS.length)
  const others = places.filter((place) => !late.includes(place)).slice(0, PLANTED - REPEATS.length)
  const plants = new Map(REPEATS.map((plant, i) => [late[i] as number, plant]))
  ;[...WRONG, ...MAGIC].forEach((plant, i) => {
    plants.set(others[i] as number, plant)
  })
  return plants
}

/**
 * Removes an ordinary row from the list, so that no two repeats repeat the same one; only a row with an IFSC can
 * change the case of its letters.
 */
function original(ordinary: Cells[], plant: Plant, random: Random): Cells {
  const start = random.below(ordinary.length)
  const needsIfsc = plant.expected.why.includes('IFSC')
  const order = [...ordinary.keys()].map((i) => (i + start) % ordinary.length)
  const index = order.find((i) => !needsIfsc || ordinary[i]?.ifsc !== '') ?? start
  return ordinary.splice(index, 1)[0] as Cells
}
