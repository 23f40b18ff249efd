export { paise } from "../payout/money.js";
export { systemClock } from "../platform/clock.js";
export { parsePayinCallback, parsePayoutCallback } from "./callback.js";
export { createGatewayClient } from "./client.js";
export { loadDialect } from "./dialect-file.js";
export { signature, verify } from "./sign.js";
export { variantsThatVerify } from "./sign-variants.js";
export { readingsOf } from "./signed-query.js";
