import { readPayinReport } from "./payin-report.js";
/** What a payin query came to. A report counts only if it names the order that was asked about. */
export function readPayinQueryAnswer(heard, by, codes, exchange) {
    switch (heard.kind) {
        case 'not-sent':
            return { kind: 'unknown', reason: 'not-sent', exchange };
        case 'unknown':
            return { kind: 'unknown', reason: heard.reason, exchange };
        case 'answer': {
            const { retCode: code, fields } = heard;
            if (code === 'SUCCESS')
                return readKnown(readPayinReport(fields, exchange), by);
            if (codes.notFound.includes(code))
                return { kind: 'not-found', exchange };
            if (codes.retry.includes(code))
                return { kind: 'retry', code, exchange };
            return { kind: 'unknown', reason: 'unlisted-code', exchange };
        }
    }
}
function readKnown(report, by) {
    const named = 'payOrderId' in by ? report.payOrderId === by.payOrderId : report.mchOrderNo === by.mchOrderNo;
    return named
        ? { kind: 'known', report }
        : { kind: 'unknown', reason: 'other-order', exchange: report.exchange };
}
