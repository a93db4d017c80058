import Testing
import ThicketClient
import ThicketCrypto
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// What commands that run beside each other leave of an account's keys in a profile.
@Suite("Keys that several commands keep")
struct KeptKeysTests {
    private let bundle: SecureBytes = AccountBundle.make().text()

    /// As a device has them.
    private func keys(
        _ key: AccessKey, version: UInt64, next: AccessKey? = nil, user: String = "u"
    ) throws -> DeviceKeys {
        let place: AccountPlace = .init(app: "notes", user: user, version: version)
        let sealed: String = Base64.encodeURL(try place.seal(bundle: bundle, with: key))
        let secret: String = Base64.encodeURL(key.secret.withUnsafeBytes { Array($0) })
        let text: String =
            #"{"format":1,"app":"notes","user":"\#(user)","name":"ann","access_key":"\#(secret)","#
            + #""bundle":"\#(sealed)","version":\#(version)}"#
        let kept: DeviceKeys = try DeviceKeys(text: SecureBytes(copying: Array(text.utf8)))
        return try DeviceKeys(kept.open(), next: next)
    }

    private let one: AccessKey = .random()
    private let two: AccessKey = .random()

    @Test("a command that read before another wrote puts nothing old in its place: neither a version nor a key")
    func older() throws {
        let before: OpenAccount = try keys(one, version: 3).open()
        #expect(try KeptKeys.merged(before, .stays, over: keys(one, version: 4)) == nil)
        #expect(try KeptKeys.merged(before, .stays, over: keys(two, version: 4)) == nil)
        #expect(try KeptKeys.merged(before, .goes, over: keys(two, version: 4)) == nil)
        let later: OpenAccount = try keys(two, version: 4).open()
        let written: DeviceKeys = try #require(try KeptKeys.merged(later, .stays, over: keys(one, version: 3)))
        #expect(written.accessKey == two && written.version == 4)
    }

    @Test("a key that is to follow stays through what others write, and goes when it has followed or was refused")
    func next() throws {
        let account: OpenAccount = try keys(one, version: 3).open()
        let kept: DeviceKeys = try #require(
            try KeptKeys.merged(account, .follows(two), over: keys(one, version: 3)))
        #expect(kept.next == two && kept.accessKey == one)
        let beside: OpenAccount = try keys(one, version: 5).open()
        #expect(try KeptKeys.merged(beside, .stays, over: kept)?.next == two)
        #expect(try KeptKeys.merged(account, .goes, over: kept)?.next == nil)
        let followed: DeviceKeys = try #require(
            try KeptKeys.merged(try keys(two, version: 4).open(), .stays, over: kept))
        #expect(followed.accessKey == two && followed.next == nil)
        // Beside newer ones of the same key it is those that are kept with it.
        let newer: DeviceKeys = try #require(
            try KeptKeys.merged(account, .follows(two), over: keys(one, version: 9)))
        #expect(newer.version == 9 && newer.next == two)
    }

    @Test("no key follows one that was changed meanwhile")
    func changed() throws {
        let account: OpenAccount = try keys(one, version: 3).open()
        #expect(throws: AccountError.keyChanged) {
            try KeptKeys.merged(account, .follows(.random()), over: keys(two, version: 4))
        }
    }

    @Test("another account's keys are not looked at: whoever logs in as somebody else keeps theirs")
    func others() throws {
        let account: OpenAccount = try keys(one, version: 3).open()
        for kept: DeviceKeys? in [nil, try keys(two, version: 9, next: one, user: "v")] {
            let written: DeviceKeys = try #require(try KeptKeys.merged(account, .stays, over: kept))
            #expect(written.user == "u" && written.accessKey == one && written.next == nil)
        }
    }

    @Test("one command at a time changes the access key; who writes keys waits for who writes them")
    func locks() throws {
        let folder: TemporaryFolder = .init("locks")
        let first: FolderLock = try .init(folder.path, "renew.lock", waits: false)
        let error: Failure? = #expect(throws: Failure.self) {
            try FolderLock(folder.path, "renew.lock", waits: false)
        }
        #expect(error?.code == .storeInUse)
        first.end()
        try FolderLock(folder.path, "renew.lock", waits: true).end()
    }
}
