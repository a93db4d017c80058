import Glibc
import Testing
import ThicketCrypto

/// What the system reports about the pages of secrets.
@Suite("Pages of secrets")
struct SecureMemoryTests {
    /// The flags that /proc/self/smaps has for the mapping around an address.
    private func flags(at address: UInt) throws -> Set<Substring> {
        let text = try read("/proc/self/smaps")
        var isHere = false
        for line in text.split(separator: "\n") {
            let range: [Substring] = line.prefix { $0 != " " }.split(separator: "-")
            if range.count == 2, let low = UInt(range[0], radix: 16), let high = UInt(range[1], radix: 16) {
                isHere = (low..<high).contains(address)
            } else if isHere, line.hasPrefix("VmFlags:") {
                return Set(line.split(separator: " ").dropFirst())
            }
        }
        return []
    }

    private func read(_ path: String) throws -> String {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether the system lets this process lock as much as a region.
    private func mayLock() -> Bool {
        let room = UnsafeMutableRawPointer.allocate(byteCount: 65_536, alignment: 4_096)
        defer {
            munlock(room, 65_536)
            room.deallocate()
        }
        return mlock(room, 65_536) == 0
    }

    @Test(
        "small and large secrets are left out of core files, and locked where that is allowed", arguments: [32, 20_000])
    func pages(count: Int) throws {
        let secret: SecureBytes = .random(count)
        let address = secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        let flags = try flags(at: address)
        #expect(flags.contains("rd") && flags.contains("wr"), "\(flags)")
        #expect(flags.contains("dd"), "\(flags)")
        if mayLock() { #expect(flags.contains("lo"), "\(flags)") }
        withExtendedLifetime(secret) {}
    }

    @Test("a secret that is no longer held is gone from its place")
    func wiped() throws {
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        try #require(memory >= 0)
        defer { close(memory) }
        func bytes(_ count: Int, at place: UInt) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: count)
            // A place that is no longer mapped reads as nothing.
            return pread(memory, &bytes, count, Int(bitPattern: place)) == count ? bytes : []
        }
        for count in [16, 32, 100, 4_096, 20_000] {
            let canary = RandomBytes.make(count)
            var secret: SecureBytes? = SecureBytes(copying: canary)
            let place = secret?.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } ?? 0
            #expect(bytes(count, at: place) == canary)
            secret = nil
            #expect(bytes(count, at: place) != canary)
        }
    }
}
