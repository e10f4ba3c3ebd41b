const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
function sampleStd(values) {
  if (values.length < 2) return null;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}
// Accuracies are stored in hundredths of a percent; an average needs every domain.
const percent = (share) => (share === null || share === undefined ? null : share / 100);
const average = (shares) => (shares.length && shares.every((share) => share !== null) ? mean(shares) / 100 : null);
function cumulative(values) {
  let total = 0;
  return values.map((value) => (total += value || 0));
}
