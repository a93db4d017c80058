import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// `thicket-release` and `thicket verify-release` as users call them.
@Suite("Making and verifying releases", .blocking)
struct VerifyReleaseTests {
    private static let commit = String(repeating: "7f", count: 20)

    private final class House {
        let folder = TemporaryFolder("release")
        var publicKey = ""

        init() throws {
            publicKey = String(try make(["key", path("key")]).dropLast())
            mkdir(path("home"), 0o700)
        }

        func path(_ name: String) -> String { "\(folder.path)/\(name)" }

        @discardableResult
        func make(_ words: [String]) throws -> String {
            let program = Programs.thicket + "-release"
            let outcome = try ChildProcess.run([program] + words)
            guard outcome.code == 0 else { throw ProcessError("\(words): \(outcome.errors)") }
            return outcome.output
        }

        func add(_ release: String, _ files: [String]) throws {
            try make(
                ["add", "--log", path("log"), "--key", path("key"), "--release", release, "--commit", commit]
                    + files.map(path))
        }

        func prove(_ release: String, to name: String = "release.json") throws {
            write(name, try make(["prove", "--log", path("log"), "--release", release]))
        }

        func verify(_ words: [String], home: String = "home") throws -> ChildProcess.Outcome {
            try ChildProcess.run(
                [Programs.thicket, "verify-release"] + words, variables: ["THICKET_HOME": path(home)])
        }

        func write(_ name: String, _ text: String) {
            let file = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
            _ = Glibc.write(file, text, text.utf8.count)
            close(file)
        }
    }

    @Test("verify-release accepts only a release's programs, and only proofs that continue the log it has seen")
    func whole() throws {
        let house = try House()
        house.write("thicketd", "program one")
        house.write("thicket", "program two")
        try house.add("0.1.0", ["thicketd", "thicket"])
        try house.prove("0.1.0")
        let both = [house.path("thicketd"), house.path("thicket")]

        #expect(try house.verify(both).code == 2, "whose log?")
        #expect(try house.verify(both + ["--release-key", "12"]).code == 2)
        let other = String(repeating: "11", count: 32)
        #expect(
            try house.verify(both + ["--release-key", other], home: "else").errors.contains("not signed by the key"))
        let good = try house.verify(both + ["--release-key", house.publicKey])
        #expect(good.code == 0 && good.output.contains("number 1 of 1") && good.output.contains("the first seen here"))
        #expect(try house.verify(both).code == 0, "the key is known now")
        #expect(try house.verify(both + ["--release-key", other]).errors.contains("another key was used here before"))

        house.write("thicket", "program twO")
        let changed = try house.verify(both)
        #expect(changed.code == 1 && changed.errors.contains("thicket: its SHA-256 is"), "\(changed)")
        #expect(try house.verify([house.path("gone")]).code == 3)

        house.write("thicket", "program three")
        try house.prove("0.1.0", to: "old.json")
        try house.add("0.2.0", ["thicketd", "thicket"])
        try house.prove("0.2.0")
        let next = try house.verify(both)
        #expect(next.code == 0 && next.output.contains("goes on from the 1 seen before"), "\(next)")
        let old = try house.verify([both[0], "--proof", house.path("old.json")])
        #expect(old.code == 1 && old.errors.contains("Get a newer proof"), "\(old)")
        #expect(
            try house.make(["check", "--log", house.path("log"), "--public", house.publicKey]).contains("2 releases"))
    }

    @Test("a device that has seen a log refuses one that the signer has restarted, and a damaged proof")
    func rewritten() throws {
        let house = try House()
        house.write("thicket", "honest")
        try house.add("0.1.0", ["thicket"])
        try house.prove("0.1.0")
        let file = house.path("thicket")
        #expect(try house.verify([file, "--release-key", house.publicKey]).code == 0)
        unlink(house.path("log"))
        house.write("thicket", "with a back door")
        try house.add("0.1.0", ["thicket"])
        try house.add("0.2.0", ["thicket"])
        try house.prove("0.1.0")
        let deceived = try house.verify([file])
        #expect(deceived.code == 1 && deceived.errors.contains("does not go on from the one"), "\(deceived)")
        #expect(
            try house.verify([file, "--release-key", house.publicKey], home: "new").code == 0,
            "a new device cannot detect it")
        house.write("release.json", "{")
        #expect(try house.verify([file]).errors.contains("not a proof of a release"))
    }

    @Test("a signing key that others may read is not used, and an existing key is not replaced")
    func keys() throws {
        let house = try House()
        house.write("thicket", "program")
        #expect(throws: ProcessError.self) { try house.make(["key", house.path("key")]) }
        chmod(house.path("key"), 0o644)
        #expect(throws: ProcessError.self) { try house.add("0.1.0", ["thicket"]) }
        #expect(access(house.path("log"), F_OK) != 0)
    }
}
