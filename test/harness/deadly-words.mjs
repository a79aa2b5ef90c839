/**
 * For a process that is to be ended by what it reads (`node --import`): whoever reads the text of an update that begins
 * with these words ends the process. To parse it does nothing yet.
 */
const DEADLY = 'deadly words';
const parse = JSON.parse;

JSON.parse = (text, revive) => {
  const value = parse(text, revive);
  if (typeof text === 'string' && text.includes(DEADLY)) arm(value);
  return value;
};

function arm(value) {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const isDeadly = name === 'text' && typeof inner === 'string' && inner.startsWith(DEADLY);
    if (isDeadly) Object.defineProperty(value, name, { enumerable: true, get: end });
    else arm(inner);
  }
}

function end() {
  process.kill(process.pid, 'SIGKILL');
  // It is under way: nothing more may be done meanwhile.
  for (;;);
}
