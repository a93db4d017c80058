import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Shared branches of several accounts, with the real programs.
@Suite("thicket tree: shared branches", .blocking)
struct ShareCommandTests {
    private let homes: ShareHomes
    private var bench: CommandBench { homes.bench }

    init() throws { homes = try ShareHomes() }

    @discardableResult
    private func good(_ user: String, _ words: String...) throws -> String {
        try bench.good(["tree"] + words, home: user)
    }

    private func run(_ user: String, _ words: String...) throws -> ChildProcess.Outcome {
        try bench.run(["tree"] + words, home: user)
    }

    @Test("members read and write a branch by paths through their pointer nodes, small and large contents")
    func members() throws {
        try homes.shareAlbum()
        #expect(try good("ben", "ls", "album") == "film\nphoto\n")
        #expect(try good("cem", "find", "from-ann") == "home/from-ann/film\nhome/from-ann/photo\n")
        #expect(try good("cem", "cat", "from-ann/photo") == "one\n")
        try good("cem", "get", "from-ann/film", bench.path("copy"))
        try homes.shell("cmp film copy")
        try bench.write("text", "by ben\n")
        try homes.shell("head -c 2M /dev/urandom > more")
        try good("ben", "put", bench.path("text"), "album/photo")
        try good("ben", "mkdir", "album/folder")
        #expect(
            try good("ben", "put", bench.path("more"), "album/folder/") == "home/album/folder/more is at version 1\n")
        #expect(try good("ann", "cat", "album/photo") == "by ben\n")
        try good("ann", "get", "album/folder/more", bench.path("copy-2"))
        try homes.shell("cmp more copy-2")
        try good("ben", "mv", "album/folder/more", "album/renamed")
        #expect(try good("cem", "ls", "from-ann") == "film\nfolder/\nphoto\nrenamed\n")
        try good("ben", "rm", "album/folder")
        #expect(try good("ann", "ls", "album") == "film\nphoto\nrenamed\n")
        #expect(try good("cem", "cat", "--offline", "from-ann/photo") == "by ben\n")
        // A reader's change is refused and undone.
        let refused = try run("cem", "rm", "from-ann/photo")
        #expect(refused.code == 4 && refused.errors.contains("permission"), "\(refused)")
        #expect(try good("cem", "cat", "from-ann/photo") == "by ben\n")
        let apart = try run("cem", "mv", "from-ann/photo", "photo")
        #expect(apart.code == 2 && apart.errors.contains("'thicket tree get'"), "\(apart)")
    }

    @Test("a removed member is told what it can do, and the others go on; one that leaves asks the owner")
    func removal() throws {
        try homes.shareAlbum()
        try good("cem", "ls", "from-ann")
        #expect(try good("ann", "unshare", "album", "cem") == "cem is removed from home/album\n")
        let removed = try run("cem", "ls", "from-ann")
        #expect(removed.code == 4 && removed.errors.contains("'thicket tree leave home/from-ann'"), "\(removed)")
        #expect(try good("cem", "ls", "--offline", "from-ann") == "film\nphoto\n")
        #expect(
            try good("cem", "shared")
                == "home/from-ann  of ann (verified)  is not open for you to read: sharing has ended, or it is a drop box\n"
        )
        #expect(try good("ann", "shared") == "home/album\n    rw  ben (verified)\n")
        #expect(try good("ben", "shared") == "home/album  of ann (verified)  you have rw\n")
        try good("cem", "leave", "from-ann")
        #expect(try good("cem", "ls") == "")
        let left = try good("ben", "leave", "album")
        #expect(left == "home/album is left; ann is asked to remove you from the list\n")
        let asked = try good("ann", "shared")
        #expect(
            asked.contains("ben (verified)  asks to leave: 'thicket tree unshare home/album ben' does it"), "\(asked)")
        #expect(try good("ann", "inbox").contains("asks to leave"))
        try good("ann", "unshare", "album", "ben")
        #expect(try !good("ann", "inbox").contains("home/album ben"))
        #expect(try good("ann", "unshare", "album") == "home/album is shared no more\n")
        #expect(try good("ann", "shared") == "")
        #expect(try good("ann", "cat", "album/photo") == "one\n")
    }

    @Test("what cannot be shared, invited or accepted is refused before anything is sent, with the next step")
    func refusals() throws {
        try good("ann", "mkdir", "album")
        func refused(_ user: String, _ code: Int32, _ text: String, _ words: String...) throws {
            let outcome = try bench.run(["tree"] + words, home: user)
            #expect(outcome.code == code && outcome.errors.contains(text), "\(outcome)")
        }
        try refused("ann", 3, "Is the name right?", "share", "album", "nobody")
        try refused("ann", 2, "is this account", "share", "album", "ann")
        try refused("ann", 2, "are not letters", "share", "album", "ben:x")
        try refused("ann", 3, "there is no home/nothing", "share", "nothing", "ben")
        try refused("ann", 2, "cannot be shared", "share", "home", "ben")
        try refused("ann", 2, "'thicket tree share home/album USER'", "invite", "album", "ben")
        try refused("ann", 2, "'thicket tree share home/album USER'", "perm", "album", "ben", "r")
        try good("ann", "share", "album", "ben:wr")
        try refused("ann", 2, "'thicket tree share home/album cem'", "invite", "album", "cem")
        try refused("ann", 3, "'thicket tree shared' lists them", "unshare", "album", "cem")
        try good("ann", "mkdir", "album/below")
        try refused("ann", 2, "a branch is neither in a shared one", "share", "album/below", "cem")
        try refused("ben", 3, "no invitation waits", "accept")
        try good("ann", "perm", "album", "ben", "r")
        #expect(try good("ann", "shared") == "home/album\n    r  ben (verified)\n")
        try good("ann", "invite", "album", "ben")
        try good("ben", "accept")
        try refused("ben", 2, "does not let this account share", "share", "album", "cem")
        try refused("ben", 2, "'thicket tree leave'", "rm", "album")
        // An empty word is a variable that is not set. Letters without r are for drop boxes; known ones stay.
        try refused("ann", 2, "USER is empty", "unshare", "album", "")
        try refused("ann", 2, "need W or U", "share", "album", "cem:w")
        try good("ann", "perm", "album", "ben", "rw")
        #expect(try good("ann", "share", "album", "ben", "cem") == "home/album is shared with ben (rw) and cem (r)\n")
    }

    @Test("a node that a member has created is written by the owner and read by another member, each version once")
    func foreignNodes() throws {
        try homes.shareAlbum(cem: "rw")
        try homes.put("by ben\n", "album/notes", as: "ben")
        #expect(try good("cem", "cat", "from-ann/notes") == "by ben\n")
        try homes.put("by ann\n", "album/notes", as: "ann")
        for (user, path) in [("ben", "album/notes"), ("cem", "from-ann/notes"), ("ann", "album/notes")] {
            let read = try run(user, "cat", path)
            #expect(read.output == "by ann\n" && read.errors.isEmpty, "\(user): \(read)")
        }
        try homes.put("by cem\n", "from-ann/notes", as: "cem")
        #expect(try good("ben", "cat", "album/notes") == "by cem\n")
        #expect(try good("ann", "cat", "album/notes") == "by cem\n")
    }

    @Test("what waits in branches is listed with the own changes, and sent by pull; a conflict names the own path")
    func waitingInBranches() throws {
        try homes.shareAlbum(cem: "rw")
        try good("ben", "mv", "album", "box")
        try homes.put("offline\n", "box/photo", as: "ben", "--offline")
        let listed = try good("ben", "queue")
        #expect(listed.contains("change home/box/photo: ") && listed.contains("(--in home/box)"), "\(listed)")
        #expect(try good("ben", "queue", "--json").contains("\"path\":\"home/box/photo\""))
        try good("ben", "pull")
        #expect(try good("ben", "queue") == "")
        #expect(try good("ann", "cat", "album/photo") == "offline\n")
        // Two nodes of one name.
        try homes.put("by cem\n", "from-ann/new", as: "cem", "--offline")
        try homes.put("by ben\n", "box/new", as: "ben")
        let met = try run("cem", "pull")
        #expect(met.errors.contains("home/from-ann/new: another device has made a node"), "\(met)")
        // What the server refuses stays, and is named with its branch.
        try good("ann", "perm", "album", "cem", "r")
        try homes.put("too late\n", "from-ann/photo", as: "cem", "--offline")
        let refused = try run("cem", "pull")
        #expect(refused.code == 4 && refused.errors.contains("queue --in home/from-ann'"), "\(refused)")
    }

    @Test("a single file that is shared is replaced by put; a copy of what is above a branch says that it ends there")
    func singleFile() throws {
        try homes.put("one\n", "notes.md", as: "ann")
        for user in ["ben", "cem"] { try bench.good(["contacts", "add", "ann"], home: user) }
        try good("ann", "share", "notes.md", "ben:rw")
        try good("ann", "invite", "notes.md", "ben")
        try good("ben", "accept", "--at", "from-ann.md")
        try homes.put("two\n", "from-ann.md", as: "ben")
        #expect(try good("ann", "cat", "notes.md") == "two\n")
        #expect(try run("ann", "find", "notes.md").output == "")
        try good("ben", "mkdir", "box")
        try good("ben", "mv", "from-ann.md", "box/from-ann.md")
        let copied = try run("ben", "get", "-r", "box", bench.path("copy"))
        #expect(copied.code != 0 && copied.errors.contains("home/box/from-ann.md"), "\(copied)")
        try homes.shell("test -d copy && test ! -e copy/from-ann.md")
        // A second pointer node for the branch is left alone.
        try good("ann", "invite", "notes.md", "ben")
        try good("ben", "accept", "--at", "again.md")
        let left = try good("ben", "leave", "again.md")
        #expect(left.contains("home/again.md is removed; you are a member still"), "\(left)")
        #expect(try good("ben", "cat", "box/from-ann.md") == "two\n")
        #expect(try !good("ann", "inbox").contains("asks to leave"))
        #expect(try good("ben", "leave", "box/from-ann.md").contains("ann is asked to remove you"))
    }

    @Test("S9: unshare --rekey encrypts the branch again, and the members that stay read on")
    func rekey() throws {
        try homes.shareAlbum()
        try good("cem", "cat", "from-ann/photo")
        let done = try good("ann", "unshare", "album", "cem", "--rekey")
        #expect(done == "cem is removed from home/album\nhome/album: 3 nodes encrypted again\n", "\(done)")
        #expect(try good("ben", "cat", "album/photo") == "one\n")
        try good("ben", "get", "album/film", bench.path("copy"))
        try homes.shell("cmp film copy")
        #expect(try good("ann", "queue") == "")
        try homes.put("later\n", "album/photo", as: "ben")
        #expect(try good("ann", "cat", "album/photo") == "later\n")
        let all = try run("ann", "unshare", "album", "--rekey")
        #expect(all.code == 2 && all.errors.contains("name USER"), "\(all)")
    }

    @Test("S12: files are put into a drop box, whose depositor neither lists nor reads it")
    func dropBox() throws {
        try good("ann", "mkdir", "box")
        try good("ann", "share", "box", "ben:WB")
        try good("ann", "invite", "box", "ben")
        let accepted = try run("ben", "accept")
        #expect(accepted.code == 0 && accepted.errors.contains("put FILE --into home/box"), "\(accepted)")
        try bench.write("report.txt", "from ben\n")
        #expect(try good("ben", "put", bench.path("report.txt"), "--into", "box") == "report.txt is in home/box\n")
        let listed = try good("ann", "ls", "box")
        #expect(listed.hasPrefix("report (") && listed.hasSuffix(").txt\n"), "\(listed)")
        #expect(try good("ann", "cat", "box/" + listed.dropLast()) == "from ben\n")
        let read = try run("ben", "ls", "box")
        #expect(read.code == 4 && read.output.isEmpty, "\(read)")
    }

    @Test("S7: a member with s adds and removes members by the path of its pointer node")
    func further() throws {
        try good("ann", "mkdir", "album")
        try homes.put("one\n", "album/photo", as: "ann")
        for user in ["ben", "cem"] { try bench.good(["contacts", "add", "ann"], home: user) }
        try good("ann", "share", "album", "ben:rws")
        try good("ann", "invite", "album", "ben")
        try good("ben", "accept", "--at", "from-ann")
        #expect(try good("ben", "share", "from-ann", "cem:rw") == "home/from-ann is shared with cem (rw)\n")
        #expect(try good("ben", "invite", "from-ann", "cem") == "cem is invited to home/from-ann\n")
        try good("cem", "accept", "--at", "album")
        #expect(try good("cem", "cat", "album/photo") == "one\n")
        #expect(try good("ben", "unshare", "from-ann", "cem") == "cem is removed from home/from-ann\n")
        #expect(try run("cem", "ls", "album").code == 4)
        try homes.put("two\n", "from-ann/photo", as: "ben")
        #expect(try good("ann", "cat", "album/photo") == "two\n")
        let ends = try run("ben", "unshare", "from-ann")
        #expect(ends.code == 2 && ends.errors.contains("only the owner"), "\(ends)")
    }

    @Test("the owner of a branch is shown by its login name although it is no contact")
    func ownerName() throws {
        try good("ann", "mkdir", "album")
        try good("ann", "share", "album", "ben")
        try good("ann", "invite", "album", "ben")
        try good("ben", "accept")
        #expect(try good("ben", "shared") == "home/album  of ann (request)  you have r\n")
    }

    @Test("commands above a pointer node neither drop a branch nor what waits in it, and write nothing beside it")
    func abovePointers() throws {
        try homes.shareAlbum()
        try good("ben", "mkdir", "box")
        try good("ben", "mv", "album", "box/album")
        try homes.put("offline\n", "box/album/photo", as: "ben", "--offline")
        let removed = try run("ben", "rm", "-r", "box")
        #expect(removed.code == 2 && removed.errors.contains("home/box/album is a branch"), "\(removed)")
        try homes.shell("mkdir -p box/album && echo mine > box/album/mine")
        let put = try run("ben", "put", "-r", bench.path("box"), "home/")
        #expect(put.code != 0 && put.errors.contains("put into it by its own path"), "\(put)")
        let out = try bench.run(["logout"], home: "ben")
        #expect(out.code != 0 && out.errors.contains("the tree"), "\(out)")
        #expect(try good("ben", "cat", "--offline", "box/album/photo") == "offline\n")
        try good("ben", "ls", "box/album")
        #expect(try good("ann", "cat", "album/photo") == "offline\n")
        // The owner names the root, and not a folder on the member's machine.
        try good("ann", "mv", "album", ".ssh")
        try good("ben", "get", "-r", "box/album", bench.place.path + "/")
        try homes.shell("test -e album/photo && test ! -e .ssh")
    }
}
