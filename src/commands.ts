/**
 * All short-lived commands in one bundle. With one bundle each, the bundler would split the code they share with
 * `start` into some twenty files, all of which every start would have to open.
 */
export { audit } from './audit.js';
export { doctor } from './doctor.js';
export { importChat } from './import-chat.js';
export { migrateStore } from './migrate-store.js';
export { listNodes } from './nodes.js';
export { approve, linkWhatsApp, list, remove, terminalAsk } from './pair.js';
export { exportPersona, importPersonas } from './persona-files.js';
export { replay } from './replay.js';
export { setUp } from './setup-terminal.js';
export { backUp, exportChat, importFolder, restoreFrom } from './transfer.js';
