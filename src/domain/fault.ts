/**
 * One rule that a command breaks. `found` is the value that broke it, safe to show: bank details are masked. `rule` is a
 * stable word for programs, `message` a sentence for people that says what to write instead.
 */
export type Fault = { field: string; rule: string; message: string; found: string }
