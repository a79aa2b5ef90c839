/**
 * Stands in for the process that decodes pictures: answers which process it is and how many it was given at once; what is
 * `broken` it cannot read, and to `hang` it never answers.
 */
let under = 0;
process.on('message', ({ type }) => {
  if (type === 'hang') return;
  under++;
  setImmediate(() => {
    const said = `${process.pid}, ${under} at once`;
    const image = { mimeType: said, bytes: Buffer.alloc(1) };
    process.send({
      prepared: type === 'broken' ? { kind: 'unreadable', reason: said } : { kind: 'image', image },
    });
    under--;
  });
});
