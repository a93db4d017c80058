import Glibc
import Testing
import ThicketCrypto

@testable import ThicketClient

/// The file with the key of local stores.
@Suite("The key of local stores")
struct StoreKeyFileTests {
    private static func cheap() throws -> PasswordCost {
        try PasswordRules.tests.cost(kdf: PasswordRules.scryptNumber, log2N: 14, r: 8, p: 1)
    }

    private static func secret(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }

    @Test("a key is made once, is the same each time, and its file must be readable for its owner only")
    func made() throws {
        let folder = try TemporaryFolder()
        let file = StoreKeyFile(path: folder.file("k"))
        #expect(!file.isThere)
        let key = try file.key()
        #expect(try file.key() == key && StoreKeyFile(path: folder.file("k")).key() == key)
        var status = stat()
        #expect(stat(folder.file("k"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        chmod(folder.file("k"), 0o640)
        let refusal = #expect(throws: ClientError.self) { try file.key() }
        #expect(refusal?.detail.contains("chmod 600") == true)
    }

    @Test(
        "a locked key file does not contain the key; its passphrase restores it, another one does not",
        arguments: [true, false])
    func lock(inMemory: Bool) throws {
        let folder = try TemporaryFolder()
        let runtime = try TemporaryFolder()
        let path = folder.file("k")
        let file = StoreKeyFile(path: path, runtimeFolder: inMemory ? runtime.path : nil)
        let key = try file.key()
        let octets: [UInt8] = key.secret.withUnsafeBytes { Array($0) }
        #expect(SealedStoreTests.bytes(path).firstRange(of: octets) != nil, "the search is not blind")
        #expect(throws: ClientError.self) { try file.lock() }
        try file.lock(passphrase: Self.secret("caf\u{E9} noir"), cost: Self.cheap())
        #expect(try file.isLocked && file.hasPassphrase)
        #expect(SealedStoreTests.bytes(path).firstRange(of: octets) == nil)
        #expect(#expect(throws: ClientError.self) { try file.key() }?.code == .locked)
        let wrong = #expect(throws: ClientError.self) {
            try file.unlock(passphrase: Self.secret("cafe noir"), rules: .tests)
        }
        #expect(wrong?.code == .unauthorized)
        #expect(throws: ClientError.self, "so cheap a one is refused in the product") {
            try file.unlock(passphrase: Self.secret("caf\u{E9} noir"))
        }
        // The other Unicode form of "é" is the same passphrase.
        try file.unlock(passphrase: Self.secret("cafe\u{301} noir"), rules: .tests)
        #expect(try file.key() == key && !file.isLocked)
        let isOnDisk = SealedStoreTests.bytes(path).firstRange(of: octets) != nil
        #expect(isOnDisk != inMemory && file.keepsKeyInMemory == inMemory)
        try file.lock()
        #expect(try file.isLocked)
        #expect(SealedStoreTests.bytes(path).firstRange(of: octets) == nil)
    }

    @Test("a changed or missing byte of a locked file keeps it closed, and does not crash the program")
    func damage() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("k")
        let file = StoreKeyFile(path: path)
        let key = try file.key()
        try file.lock(passphrase: Self.secret("passphrase"), cost: Self.cheap())
        let good = SealedStoreTests.bytes(path)
        for place in good.indices {
            // Each place costs a derivation where the parameters stay good: some places are enough.
            if place > 24, place % 11 != 0 { continue }
            var bad = good
            bad[place] ^= 1
            SealedStoreTests.put(bad, to: path)
            #expect(throws: ClientError.self) {
                try file.unlock(passphrase: Self.secret("passphrase"), rules: .tests)
            }
            SealedStoreTests.put(Array(good[..<place]), to: path)
            #expect(throws: ClientError.self) { try file.key() }
        }
        SealedStoreTests.put(good, to: path)
        try file.unlock(passphrase: Self.secret("passphrase"), rules: .tests)
        #expect(try file.key() == key)
    }

    @Test("a value sealed under the store's key opens for the same use only, and the key shows nothing when printed")
    func values() throws {
        let key = StoreKey.random()
        let sealed = key.seal(Array("token".utf8), as: "thicket/test-a/1")
        #expect(try key.open(sealed, as: "thicket/test-a/1") == Array("token".utf8))
        #expect(throws: ClientError.self) { try key.open(sealed, as: "thicket/test-b/1") }
        #expect(throws: ClientError.self) { try StoreKey.random().open(sealed, as: "thicket/test-a/1") }
        var text = ""
        dump(key, to: &text)
        #expect("\(key)" == "(key of local stores)" && !text.contains("secret"))
    }
}
