import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
/**
 * The metrics of one process. Labels are stable words and merchant ids, never an order number or anything
 * of a beneficiary.
 */
export class Metrics {
    registry = new Registry();
    constructor() {
        collectDefaultMetrics({ register: this.registry, prefix: 'payoutd_' });
    }
    counter(name, help, labelNames) {
        return new Counter({ name: `payoutd_${name}`, help, labelNames, registers: [this.registry] });
    }
    gauge(name, help, labelNames) {
        return new Gauge({ name: `payoutd_${name}`, help, labelNames, registers: [this.registry] });
    }
    /** Observes seconds. */
    seconds(name, help, labelNames) {
        const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
        return new Histogram({ name: `payoutd_${name}`, help, labelNames, buckets, registers: [this.registry] });
    }
}
