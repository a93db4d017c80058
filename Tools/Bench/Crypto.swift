import Glibc
import ThicketCrypto

/// The primitives on one core, alternating with `openssl speed`: both use the same library, so that a ratio below 1 is
/// our overhead.
///
/// Blocks of 16 KiB, and of 64 KiB as content has them; 13 bytes of additional data, as `openssl speed -aead` has. Each
/// side counts its own CPU time. A seal is complete: nonce, data, text, tag; a signature begins with an existing key;
/// an agreement begins with the 32 bytes of the other's public key.
func cryptoSpeed(rounds: Int = 5) throws -> [Figure] {
    guard access(TLSPeer.program, X_OK) == 0 else {
        throw BenchError("the command openssl is missing: apt install openssl")
    }
    // Hashes first: OpenSSL's ChaCha20-Poly1305 leaves the upper halves of vector registers in use, after which its
    // SHA-256 needs a sixth more time until something clears them. `openssl speed` runs each in its own process.
    let rows: [CryptoRow] = hashRows() + (try sealRows()) + (try curveRows())
    var (ours, theirs): ([[Double]], [[Double]]) = (
        .init(repeating: [], count: rows.count), .init(repeating: [], count: rows.count)
    )
    for round: Int in 1...rounds {
        for (place, row) in rows.enumerated() {
            ours[place].append(row.unitsPerSecond())
            theirs[place].append(try row.peerUnitsPerSecond())
        }
        progress("crypto: round \(round) of \(rounds)")
    }
    return rows.enumerated().flatMap { place, row in
        [
            Figure(name: row.name, samples: ours[place], unit: row.unit),
            Figure(name: "  openssl speed", samples: theirs[place], unit: row.unit),
            Figure(
                name: "  ratio", samples: zip(ours[place], theirs[place]).map { $0 / $1 }, unit: "",
                goal: .atLeast(row.goal)),
        ]
    }
}

/// One operation that both sides do.
private struct CryptoRow {
    let name: String
    /// Bytes of one call if bytes are counted; nil if calls are.
    let bytes: Int?
    let goal: Double
    /// Arguments of `openssl speed`.
    let words: [String]
    /// The position of the number in its line, from the end.
    let column: Int
    let call: () -> Int

    var unit: String { bytes == nil ? "1/s" : "MB/s" }

    /// Measures over a third of a second of this thread's CPU time.
    func unitsPerSecond() -> Double {
        var (count, sum): (Int, Int) = (0, 0)
        let start: UInt64 = cpuNanoseconds()
        var now: UInt64 = start
        while now - start < 330_000_000 {
            for _ in 0..<16 { sum &+= call() }
            count += 16
            now = cpuNanoseconds()
        }
        precondition(sum != 0, "nothing was computed")
        let calls: Double = Double(count) / Double(now - start) * 1e9
        return bytes.map { calls * Double($0) / 1e6 } ?? calls
    }

    func peerUnitsPerSecond() throws -> Double {
        let said: String = try TLSPeer.text(TLSPeer.spawn(["speed", "-mr", "-seconds", "1"] + words))
        // "+F:25:AES-256-GCM:4539857454.55", "+F6:0:253:Ed25519:24807.692308:12510.000000"
        guard let line: Substring = said.split(separator: "\n").last(where: { $0.hasPrefix("+F") }),
            let value: Double = Double(line.split(separator: ":").suffix(column).first ?? "")
        else { throw BenchError("openssl speed \(words) said: \(said)") }
        return bytes == nil ? value : value / 1e6
    }
}

private func hashRows() -> [CryptoRow] {
    let block: [UInt8] = RandomBytes.make(16_384)
    let secret: SecureBytes = .random(32)
    let hashes: [(String, [String], () -> Int)] = [
        ("SHA-256", ["-evp", "sha256"], { Int(Hash.sha256(block)[0]) + 1 }),
        ("SHA-512", ["-evp", "sha512"], { Int(Hash.sha512(block)[0]) + 1 }),
        ("HMAC-SHA-256", ["-hmac", "sha256"], { Int(HMAC.code(.sha256, key: secret, block)[0]) + 1 }),
    ]
    return hashes.map { name, words, call in
        CryptoRow(
            name: "\(name) of 16 KiB", bytes: block.count, goal: 0.9, words: ["-bytes", "16384"] + words, column: 1,
            call: call)
    }
}

private func sealRows() throws -> [CryptoRow] {
    var rows: [CryptoRow] = []
    for (suite, name): (AEADSuite, String) in [
        (.aes256GCM, "aes-256-gcm"), (.chaCha20Poly1305, "chacha20-poly1305"),
    ] {
        let key = try AEAD(suite, key: .random(32))
        for bytes: Int in [16_384, 65_536] {
            let room: UnsafeMutableRawBufferPointer = .allocate(byteCount: bytes + 16, alignment: 64)
            room.copyBytes(from: RandomBytes.make(bytes + 16))
            let clear = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<bytes])
            let data = [UInt8](repeating: 7, count: 13)
            var number: UInt64 = 0
            rows.append(
                CryptoRow(
                    name: "\(name) sealing \(bytes / 1_024) KiB", bytes: bytes, goal: 0.9,
                    words: ["-bytes", "\(bytes)", "-aead", "-evp", name], column: 1
                ) {
                    number += 1
                    data.withUnsafeBytes {
                        key.seal(clear, nonce: .chunk(number, isLast: false), data: $0, into: room)
                    }
                    return Int(room[0]) + 1
                })
        }
    }
    return rows
}

private func curveRows() throws -> [CryptoRow] {
    // As long as the message that openssl speed signs.
    let message: [UInt8] = RandomBytes.make(20)
    let signer: Ed25519.SigningKey = .random()
    let signature: [UInt8] = signer.signature(of: message)
    let own: X25519.PrivateKey = .random()
    let other: X25519.PublicKey = X25519.PrivateKey.random().publicKey
    return [
        CryptoRow(name: "Ed25519 signatures", bytes: nil, goal: 0.8, words: ["ed25519"], column: 2) {
            Int(signer.signature(of: message)[0]) + 1
        },
        CryptoRow(name: "Ed25519 verifications", bytes: nil, goal: 0.8, words: ["ed25519"], column: 1) {
            signer.verifyingKey.isSignature(signature, of: message) ? 1 : 0
        },
        CryptoRow(name: "X25519 agreements", bytes: nil, goal: 0.8, words: ["ecdhx25519"], column: 2) {
            (try? own.sharedSecret(with: other).count) ?? 0
        },
    ]
}
