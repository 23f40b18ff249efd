export function recoveryOutcome(recovered) {
    if (recovered.kind === 'impossible') {
        const paid = recovered.payin.state === 'paid';
        const message = paid
            ? 'it is paid already'
            : 'the gateway has not named its order, so it cannot be recovered';
        return { outcome: recovered.kind, message };
    }
    const { answer } = recovered;
    switch (answer.kind) {
        case 'submitted':
            return {
                outcome: 'submitted',
                message: 'submitted: the gateway looks for the payment and is asked about it',
            };
        case 'refused':
        case 'not-found':
        case 'retry-later':
            return { outcome: answer.kind, message: `the gateway says ${answer.code} ${answer.message}`.trimEnd() };
        case 'unknown':
            return {
                outcome: 'unknown',
                message: `no answer that counts (${answer.reason}): the gateway is asked about it`,
            };
    }
}
