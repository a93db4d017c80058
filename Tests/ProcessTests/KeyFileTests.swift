import Glibc
import Testing
import ThicketProcesses

/// Partners and the key file, by the commands that operators use.
@Suite("Partners by command")
struct KeyFileTests {
    private let folder: TemporaryFolder = .init("keyfile")

    private func run(_ words: String...) throws -> ChildProcess.Outcome { try Daemon.command(folder.path, words) }

    @Test("the key file is made for its owner only; one that is lost is not replaced, one that is another is told of")
    func keyFile() throws {
        #expect(try run("partner", "create").code == 0)
        let path: String = folder.path + "/server.key"
        var info: stat = .init()
        #expect(stat(path, &info) == 0 && info.st_mode & 0o777 == 0o600 && info.st_size == 32)
        #expect(rename(path, path + ".away") == 0)
        for words: [String] in [["partner", "list"], ["partner", "create"], ["serve"]] {
            let lost: ChildProcess.Outcome = try Daemon.command(folder.path, words)
            #expect(lost.code == 1 && lost.errors.contains("put back the file that was there"), "\(lost)")
        }
        #expect(access(path, F_OK) != 0)
        #expect(try Daemon.command(folder.path, ["partner", "list", "--key-file", path + ".away"]).code == 0)
        let made: ChildProcess.Outcome = try ChildProcess.run([
            "/bin/sh", "-c", "head -c 32 /dev/urandom > \(path); chmod 600 \(path)",
        ])
        #expect(made.code == 0)
        let other: ChildProcess.Outcome = try run("partner", "list")
        #expect(other.code == 0 && other.errors.contains("not the one that was there before"))
        #expect(other.output.contains("another key file sealed it"))
    }

    @Test("partner rotate says which keys are good; the list goes by numbers and tells no secret")
    func rotation() throws {
        #expect(try run("partner", "create").code == 0)
        #expect(try run("partner", "add", "--id", "317", "--api-key", "72278fb2-34a0-7058", "--no-auth-key").code == 0)
        let first: ChildProcess.Outcome = try run("partner", "rotate", "317")
        #expect(first.errors.contains("lets its users in from now on"))
        let second: ChildProcess.Outcome = try run("partner", "rotate", "317")
        #expect(second.errors.contains("before it stays good.") && !second.errors.contains("older one"))
        let third: ChildProcess.Outcome = try run("partner", "rotate", "317")
        #expect(third.errors.contains("The older one is good no more."))
        let list: String = try run("partner", "list").output
        #expect(list.split(separator: "\n").map { $0.prefix { $0 != "\t" } } == ["317", "1000"])
        #expect(list.contains("2 auth keys\t0 users") && list.contains("1 auth key\t"))
        for outcome: ChildProcess.Outcome in [first, second, third] {
            let key: Substring = outcome.output.dropFirst("auth key ".count).prefix { $0 != "\n" }
            #expect(key.utf8.count == 88 && !list.contains(key))
        }
        #expect(try run("partner", "disable", "9").errors.contains("thicketd partner list"))
    }
}
