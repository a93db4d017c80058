import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketSQLite

/// Whole programs of three accounts with one branch, and an operator that edits its database (scenario 5; A10, A12).
@Suite("Shared branches as whole programs", .blocking)
struct ShareScenarioTests {
    private let homes: ShareHomes

    init() throws { homes = try ShareHomes() }

    /// Runs a change of the server's database while the server is stopped.
    private func edit(_ statements: [String]) throws {
        try homes.bench.stopServer()
        do {
            let database = try Database(path: homes.bench.path("data/thicket.db"), mode: .readWrite)
            for statement in statements { try database.execute(statement) }
        }
        try homes.bench.startServer()
    }

    /// The statement that replaces a text in all logged records.
    private func replacing(_ old: String, _ new: String) -> [String] {
        ["diff", "snap"].map { column in
            """
            UPDATE chg SET \(column) = CAST(replace(CAST(\(column) AS TEXT), '\(old)', '\(new)') AS BLOB)
            WHERE instr(CAST(\(column) AS TEXT), '\(old)') > 0
            """
        }
    }

    @Test(
        "scenario 5: a list of three accounts, edits at once, a conflict that is decided, and a member that is removed")
    func scenario() throws {
        try homes.shareAlbum(cem: "rw")
        // Both write while they are apart: one is first, the other decides.
        try homes.put("by ben\n", "album/photo", as: "ben", "--offline")
        try homes.put("by cem\n", "from-ann/photo", as: "cem")
        try homes.put("new of cem\n", "from-ann/cem", as: "cem")
        let conflict = try homes.run("ben", "ls", "album")
        #expect(conflict.code == 4 && conflict.errors.contains("'thicket tree queue --in home/album'"), "\(conflict)")
        #expect(conflict.output == "cem\nfilm\nphoto\n")
        #expect(try homes.good("ben", "queue", "--in", "album").contains("photo"))
        #expect(try homes.good("ann", "cat", "album/photo") == "by cem\n")
        try homes.good("ben", "queue", "retry", "--in", "album")
        for (user, path) in [("ann", "album/photo"), ("ben", "album/photo"), ("cem", "from-ann/photo")] {
            #expect(try homes.good(user, "cat", path) == "by ben\n", "\(user)")
        }
        // The server, and each device, begin again between the steps.
        try homes.bench.stopServer()
        try homes.bench.startServer()
        try homes.good("ann", "unshare", "album", "cem")
        try homes.put("without cem\n", "album/photo", as: "ben")
        #expect(try homes.good("ann", "cat", "album/photo") == "without cem\n")
        let late = try homes.run("cem", "cat", "from-ann/photo")
        #expect(late.code == 4 && late.output.isEmpty, "\(late)")
        #expect(try homes.good("cem", "cat", "--offline", "from-ann/photo") == "by ben\n")
        // A new machine of a member that stays reads what the former member wrote, too.
        try homes.login("ben", home: "ben-2")
        #expect(try homes.good("ben-2", "ls", "album") == "cem\nfilm\nphoto\n")
        #expect(try homes.good("ben-2", "cat", "album/cem", "album/photo") == "new of cem\nwithout cem\n")
    }

    @Test("A12: a removed member that the server serves again opens nothing that was written after its removal")
    func servedAgain() throws {
        try homes.shareAlbum()
        try homes.good("cem", "cat", "from-ann/photo")
        try edit(["CREATE TABLE kept AS SELECT id, shared FROM node WHERE shared IS NOT NULL"])
        try homes.good("ann", "unshare", "album", "cem")
        try homes.put("after cem\n", "album/photo", as: "ben")
        try homes.put("after cem, new\n", "album/later", as: "ann")
        try edit([
            "UPDATE node SET shared = (SELECT shared FROM kept WHERE kept.id = node.id) WHERE shared IS NOT NULL",
            "DROP TABLE kept",
        ])
        for path in ["from-ann/photo", "from-ann/later"] {
            let read = try homes.run("cem", "cat", path)
            #expect(!read.output.contains("after cem"), "\(read)")
        }
        try homes.login("cem", home: "cem-2")
        let fresh = try homes.run("cem-2", "cat", "from-ann/photo")
        #expect(fresh.code != 0 && fresh.output.isEmpty, "\(fresh)")
        #expect(try homes.good("ben", "cat", "album/later") == "after cem, new\n")
    }

    @Test("A10: letters that the server raises give a member nothing that others believe")
    func raisedLetters() throws {
        try homes.shareAlbum()
        for (user, path) in [("ann", "album"), ("ben", "album"), ("cem", "from-ann")] {
            try homes.good(user, "ls", path)
        }
        try edit(replacing(#""r":"r""#, #""r":"rw""#))
        // The server lets the member write now. The devices that know the list do not believe it.
        try homes.bench.write("text", "by cem\n")
        let written = try homes.run("cem", "put", homes.bench.path("text"), "from-ann/photo")
        #expect(written.code == 0, "\(written)")
        for user in ["ann", "ben"] {
            let read = try homes.run(user, "cat", "album/photo")
            #expect(
                read.output == "one\n" && read.errors.contains("home/album/photo: what the server shows"), "\(read)")
        }
        // The next genuine record replaces it for all.
        try homes.put("by ann\n", "album/photo", as: "ann")
        let replaced = try homes.run("ben", "cat", "album/photo")
        #expect(replaced.output == "by ann\n", "\(replaced)")
        #expect(try homes.good("ann", "shared").contains("    r  cem"))
        // A device that sees the list for the first time does not open the branch.
        try homes.login("ben", home: "ben-2")
        let fresh = try homes.run("ben-2", "ls", "album")
        #expect(fresh.code != 0 && fresh.output.isEmpty && fresh.errors.contains("not genuine"), "\(fresh)")
    }
}
