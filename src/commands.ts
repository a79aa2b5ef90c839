/**
 * Every command but those that run for long, in one place: a process needs one of them and loads all. Were each loaded by
 * itself, the build would cut what a start shares with it into files of their own, some twenty that every start opens.
 */
export { audit } from './audit.js';
export { doctor } from './doctor.js';
export { approve, linkWhatsApp, list, remove, terminalAsk } from './pair.js';
export { replay } from './replay.js';
export { backUp, exportChat, importFolder, restoreFrom } from './transfer.js';
