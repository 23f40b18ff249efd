import { hostname, userInfo } from 'node:os';
/** The user and the host of this process, as the operating system names them. */
export const whoami = () => ({ osUser: userName(), host: hostname() });
/** A container's user often has a number and no name. */
function userName() {
    try {
        return userInfo().username;
    }
    catch {
        return `uid ${process.getuid?.() ?? 'unknown'}`;
    }
}
