import { renameSync, writeFileSync } from 'node:fs'

/** Replaces a file in one step: a reader, even after a crash in between, finds the old or the new text. */
export function writeWhole(file: string, text: string, mode = 0o644): void {
  const unfinished = `${file}.unfinished`
  writeFileSync(unfinished, text, { mode })
  renameSync(unfinished, file)
}
