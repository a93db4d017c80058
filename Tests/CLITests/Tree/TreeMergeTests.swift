import Testing
import ThicketBlocking

@testable import ThicketCLI

/// JSON that two machines, or two members of a branch, change at the same time.
@Suite("thicket tree: merged files", .blocking)
struct TreeMergeTests {
    private static let merged = "another device has changed it too; both changes are merged\n"

    private func list(_ more: String...) -> String {
        "[\n" + (["\"bread\"", "\"milk\""] + more.map { "\"\($0)\"" }).map { "  \($0)" }.joined(separator: ",\n")
            + "\n]\n"
    }

    @Test("Q17: two machines put one JSON file offline: one merged file, no conflict, and one line says so")
    func twoMachines() throws {
        let homes = try TreeHomes()
        try homes.bench.write("list.json", list())
        try homes.tree("put", homes.path("list.json"), "list.json")
        try homes.tree("pull", home: "other")
        for (home, item) in [("home", "tea"), ("other", "salt")] {
            try homes.bench.write("list.json", list(item))
            try homes.tree("put", "--offline", homes.path("list.json"), "list.json", home: home)
        }
        try homes.tree("pull")
        let pulled = try homes.run("pull", home: "other")
        #expect(pulled.code == 0, "\(pulled)")
        #expect(pulled.errors.ranges(of: "home/list.json: " + Self.merged).count == 1, "\(pulled)")
        for home in ["home", "other"] {
            #expect(try homes.tree("cat", "list.json", home: home) == list("tea", "salt"))
            #expect(try homes.tree("ls", home: home) == "list.json\n" && homes.tree("queue", home: home) == "")
        }
        // The merged file is put and copied like every other one.
        #expect(try homes.tree("get", "--force", "list.json", homes.path("list.json")).contains("list.json"))
        #expect(homes.bench.read("list.json") == list("tea", "salt"))
        let again = try homes.tree("put", homes.path("list.json"), "list.json", home: "other")
        #expect(again.contains("is so already"), "\(again)")
        #expect(try !homes.serverHolds("bread"))
    }

    @Test("Q17: a value that both machines changed is a conflict as before: nothing is lost, and the user decides")
    func collision() throws {
        let homes = try TreeHomes()
        func put(_ text: String, _ home: String, _ more: String...) throws {
            try homes.bench.write("f", text)
            try homes.bench.good(["tree", "put", homes.path("f"), "f"] + more, home: home)
        }
        try put(#"{"n": 0}"#, "home")
        try homes.tree("pull", home: "other")
        try put(#"{"n": 1, "mine": 1}"#, "other", "--offline")
        try put(#"{"n": 2, "theirs": 1}"#, "home")
        let pulled = try homes.run("pull", home: "other")
        #expect(pulled.code == 4 && !pulled.errors.contains("merged"), "\(pulled)")
        #expect(try homes.tree("cat", "f") == #"{"n": 2, "theirs": 1}"#)
        try homes.tree("queue", "retry", home: "other")
        #expect(try homes.tree("cat", "f") == #"{"n":1,"theirs":1,"mine":1}"#)
    }

    @Test("Q17: the owner and a member of a branch change one JSON file, and both have both changes")
    func branch() throws {
        let homes = try ShareHomes()
        try homes.shareAlbum()
        try homes.put(#"{"title":"a"}"#, "album/info.json", as: "ann")
        try homes.good("ben", "cat", "album/info.json")
        try homes.put(#"{"title":"a","by":"ben"}"#, "album/info.json", as: "ben", "--offline")
        try homes.put(#"{"title":"a","year":2026}"#, "album/info.json", as: "ann")
        let sent = try homes.run("ben", "ls", "album")
        #expect(sent.code == 0 && sent.errors.contains("home/album/info.json: " + Self.merged), "\(sent)")
        let wanted = #"{"title":"a","year":2026,"by":"ben"}"#
        #expect(try homes.good("ann", "cat", "album/info.json") == wanted)
        #expect(try homes.good("ben", "cat", "album/info.json") == wanted)
        #expect(try homes.good("cem", "cat", "from-ann/info.json") == wanted)
    }
}
