// Sorts the lines of its standard input.
const lines = require('node:fs').readFileSync(0, 'utf8').split('\n').filter(Boolean);
console.log(lines.sort().join('\n'));
