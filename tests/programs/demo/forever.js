// Ignores whoever asks it to end.
process.on('SIGTERM', () => {});
console.log('I will not stop.');
setInterval(() => {}, 1000);
