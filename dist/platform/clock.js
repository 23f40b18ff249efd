export const systemClock = {
    now: () => Date.now(),
    monotonic: () => performance.now(),
};
