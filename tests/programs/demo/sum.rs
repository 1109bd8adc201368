fn main() {
    let sum: u64 = (1..=1_000_000).sum();
    println!("1 + 2 + ... + 1000000 = {sum}");
}
