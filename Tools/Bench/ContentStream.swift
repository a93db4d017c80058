import Glibc
import ThicketCrypto

/// A file of 1 GiB sealed in chunks, and opened, beside the bare cipher over messages of a chunk's size: CPU time of
/// the one thread, alternately. The file has no blocks on disk, so that reading it costs as much as a file in the page
/// cache.
func contentStreams() throws -> [Figure] {
    let file = try SparseFile(bytes: 1 << 30)
    let turns = 5
    var rates: [String: [Double]] = [:]
    var growth: [Double] = []
    for _: Int in 0..<turns {
        for suite: AEADSuite in [.aes256GCM, .chaCha20Poly1305] {
            let name: String = suite == .aes256GCM ? "AES-256-GCM" : "ChaCha20-Poly1305"
            let work: [(String, () throws -> Void)] = [
                ("bare \(name), from memory", { try bare(suite, nil, 1 << 30) }),
                ("bare \(name), from the file", { try bare(suite, file, 1 << 30) }),
                ("sealing the file, \(name)", { growth.append(try sealing(suite, file)) }),
            ]
            for (name, body) in work {
                let start: UInt64 = cpuNanoseconds()
                try body()
                rates[name, default: []].append(Double(1 << 30) / Double(cpuNanoseconds() - start))
            }
        }
    }
    var figures: [Figure] = rates.sorted { $0.key < $1.key }.map {
        Figure(name: $0.key, samples: $0.value, unit: "GB/s")
    }
    for name: String in ["AES-256-GCM", "ChaCha20-Poly1305"] {
        let sealed: [Double] = rates["sealing the file, \(name)"] ?? []
        for (what, goal): (String, Figure.Goal?) in [("from the file", .atLeast(0.8)), ("from memory", nil)] {
            let shares: [Double] = zip(sealed, rates["bare \(name), \(what)"] ?? []).map { $0 / $1 }
            figures.append(
                Figure(name: "sealing the file / bare \(name) \(what)", samples: shares, unit: "", goal: goal))
        }
    }
    figures.append(
        Figure(name: "memory that sealing 1 GiB has added at its peak", samples: growth, unit: "MiB", goal: .atMost(1)))
    return figures
}

/// A file of zeros without blocks on disk.
private final class SparseFile {
    let descriptor: Int32
    let bytes: Int

    init(bytes: Int) throws {
        var template: [CChar] = Array("/tmp/thicket-stream-XXXXXX".utf8CString)
        (descriptor, self.bytes) = (mkstemp(&template), bytes)
        unlink(template)
        guard descriptor >= 0, ftruncate(descriptor, off_t(bytes)) == 0 else {
            throw BenchError("no temporary file: errno \(errno)")
        }
    }

    deinit { close(descriptor) }

    func read(at offset: Int, _ room: UnsafeMutableRawBufferPointer) throws {
        guard pread(descriptor, room.baseAddress, room.count, off_t(offset)) == room.count else {
            throw BenchError("the file cannot be read: errno \(errno)")
        }
    }
}

private func bare(_ suite: AEADSuite, _ file: SparseFile?, _ bytes: Int) throws {
    let aead: AEAD = try AEAD(suite, key: .random(32))
    let (clear, sealed): (UnsafeMutableRawBufferPointer, UnsafeMutableRawBufferPointer) = (
        .allocate(byteCount: 65_536, alignment: 64), .allocate(byteCount: 65_552, alignment: 64)
    )
    defer {
        clear.deallocate()
        sealed.deallocate()
    }
    clear.initializeMemory(as: UInt8.self, repeating: 0)
    for chunk: Int in 0..<bytes / 65_536 {
        try file?.read(at: chunk * 65_536, clear)
        aead.seal(
            UnsafeRawBufferPointer(clear), nonce: .chunk(UInt64(chunk), isLast: false),
            data: .init(start: nil, count: 0),
            into: sealed)
    }
}

/// - Returns: MiB by which the largest resident size has grown.
private func sealing(_ suite: AEADSuite, _ file: SparseFile) throws -> Double {
    let key: ContentKey = try ContentKey(suite, key: .random(32), dataID: RandomBytes.make(16))
    var sealer: ContentSealer = try ContentSealer(key, length: UInt64(file.bytes))
    let room: UnsafeMutableRawBufferPointer = .allocate(byteCount: 65_536, alignment: 64)
    defer { room.deallocate() }
    try file.read(at: 0, room)
    let before: Int = try peakKilobytes()
    var sealed = 0
    for offset in stride(from: 0, to: file.bytes, by: room.count) {
        try file.read(at: offset, room)
        try sealer.seal(UnsafeRawBufferPointer(room)) { sealed += $0.count }
    }
    let length: UInt64 = sealer.layout.sealedLength
    try sealer.finish { sealed += $0.count }
    guard sealed == Int(length) else { throw BenchError("\(sealed) bytes came out, not \(length)") }
    return Double(try peakKilobytes() - before) / 1_024
}

/// The largest resident size of this process so far.
private func peakKilobytes() throws -> Int {
    var usage = rusage()
    guard getrusage(RUSAGE_SELF.rawValue, &usage) == 0 else { throw BenchError("getrusage: errno \(errno)") }
    return usage.ru_maxrss
}
