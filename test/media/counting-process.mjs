/** Stands in for the process that decodes pictures: answers how many it was given at once; to `hang` it never does. */
let under = 0;
process.on('message', ({ type }) => {
  if (type === 'hang') return;
  under++;
  setImmediate(() => {
    process.send({ prepared: { kind: 'unreadable', reason: `${under} at once` } });
    under--;
  });
});
