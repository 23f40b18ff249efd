import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Gauge, Histogram } from 'prom-client'

/**
 * The metrics of one process. Labels are stable words and merchant ids, never an order number or data of a
 * beneficiary.
 */
export class Metrics {
  readonly registry = new Registry()

  constructor() {
    collectDefaultMetrics({ register: this.registry, prefix: 'payoutd_' })
  }

  counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: `payoutd_${name}`, help, labelNames, registers: [this.registry] })
  }

  gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return new Gauge({ name: `payoutd_${name}`, help, labelNames, registers: [this.registry] })
  }

  /** Observes seconds. */
  seconds<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Histogram<Label> {
    const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    return new Histogram({ name: `payoutd_${name}`, help, labelNames, buckets, registers: [this.registry] })
  }
}
