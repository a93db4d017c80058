import Glibc
import Synchronization
import ThicketCrypto
import ThicketTestSupport
import ThicketTree

@testable import ThicketTreesystem

/// A folder that is removed with all its files.
final class ContentFolder: Sendable {
    let path: String

    init() {
        path = "/tmp/thicket-content-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        mkdir(path, 0o700)
    }

    deinit { Self.remove(path) }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Names of all files, sorted.
    var names: [String] { ((try? SystemFiles().names(in: path)) ?? []).sorted() }

    private static func remove(_ path: String) {
        for name in (try? SystemFiles().names(in: path)) ?? [] { remove("\(path)/\(name)") }
        if rmdir(path) != 0 { unlink(path) }
    }

    static func bytes(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Int(lseek(file, 0, SEEK_END)))
        let count = pread(file, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    /// Replaces the content of a file in place.
    static func put(_ bytes: [UInt8], to path: String) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        _ = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        close(file)
    }
}

/// Randomness from a seed, shared by closures.
final class ContentSeed: Sendable {
    private let generator: Mutex<SeededRandom>

    init(_ seed: UInt64) { generator = Mutex(SeededRandom(seed: seed)) }

    func next() -> UInt64 { generator.withLock { $0.next() } }
    func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
    func bytes(_ count: Int) -> [UInt8] {
        generator.withLock { generator in
            var bytes = [UInt8]()
            bytes.reserveCapacity(count + 8)
            while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes += $0 } }
            return Array(bytes.prefix(count))
        }
    }

    /// Keys and ids from the seed.
    var random: TreeRandom {
        TreeRandom(secret: { SecureBytes(copying: self.bytes($0)) }, bytes: { self.bytes($0) })
    }
}

extension SpoolWriter {
    /// Seals in memory of the test's folder.
    static func make(
        _ folder: ContentFolder, _ files: any ContentFiles = SystemFiles(), seed: UInt64,
        padding: ContentPadding = .standard, now: @escaping @Sendable () -> Int64 = { 0 }
    ) throws -> SpoolWriter {
        try SpoolWriter(
            folder: folder.path, files: files, random: ContentSeed(seed).random, padding: padding, now: now)
    }
}

extension NodeSections {
    init(_ content: NodeContent) {
        self.init(metadata: .bytes(content.metadata), thumbnail: .bytes(content.thumbnail), data: .bytes(content.data))
    }
}

extension SpooledContent {
    var blob: SpooledBlob? { if case .blob(let blob) = self { blob } else { nil } }
}
