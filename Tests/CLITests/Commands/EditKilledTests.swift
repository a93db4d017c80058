import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketCLI

@Suite("A killed edit", .blocking)
struct EditKilledTests {
    @Test("no clear text stays after SIGTERM and SIGHUP while the editor runs", arguments: [SIGTERM, SIGHUP])
    func ended(_ number: Int32) throws {
        let bench = try CommandBench()
        try bench.login()
        // The editor writes, ends the command, and stays until its file is gone, or for ten seconds.
        let editor = """
            echo "$1" > '\(bench.path("sheet"))'; echo clear >> "$1"; kill -\(number) $PPID; n=0; \
            while [ -e "$1" ] && [ $n -lt 200 ]; do n=$((n+1)); sleep 0.05; done; true
            """
        let outcome = try bench.run(["edit", "notes", "today", "--text", "text"], variables: ["EDITOR": editor])
        #expect(outcome.signal == number, "\(outcome)")
        guard case .bytes(let bytes) = Files.read(bench.path("sheet"), bytesMax: 4_096) else {
            Issue.record("the editor did not run: \(outcome)")
            return
        }
        let sheet = String(decoding: bytes.dropLast(), as: UTF8.self)
        #expect(sheet.hasSuffix("/today.txt"))
        let folder = String(sheet.dropLast("/today.txt".count))
        #expect(access(folder, F_OK) != 0 && errno == ENOENT, "\(folder)")
    }
}
