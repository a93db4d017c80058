import Testing

@testable import ThicketTreeShape

/// The letters of a shared branch against what an account wants to do, each combination of letters (S7).
@Suite("Rights in a shared branch")
struct ShareRightTests {
    private static let everySet = (UInt8.min...UInt8.max).map { SharePermissions(rawValue: $0) }

    private func isAllowed(_ action: ShareAction, _ letters: SharePermissions) -> Bool {
        ShareRight(isOwner: false, permissions: letters).denial(of: action) == nil
    }

    @Test("letters are read in one order, each once; every set is written and read back, but for the empty one")
    func text() {
        for letters in Self.everySet where !letters.isEmpty {
            #expect(SharePermissions(text: letters.text) == letters)
        }
        for text in ["", "wr", "rr", "x", "r ", "Wr", "rwsRLUWBB"] { #expect(SharePermissions(text: text) == nil) }
        #expect(SharePermissions.readWrite.text == "rw")
        #expect(SharePermissions.deposit.text == "WB")
    }

    @Test("the owner may do everything, whatever the letters")
    func owner() {
        let actions: [ShareAction] = [
            .read, .create(depth: 9, hasContent: true, others: 5), .change(isRoot: true, depth: 0, hasContent: true),
            .remove(isRoot: true, isOwn: false), .share, .leave,
        ]
        for letters in Self.everySet {
            for action in actions { #expect(ShareRight(isOwner: true, permissions: letters).denial(of: action) == nil) }
        }
    }

    @Test("reading needs r, sharing needs s, and no letters let a member move the root or a node out of the branch")
    func single() {
        for letters in Self.everySet {
            #expect(isAllowed(.read, letters) == letters.contains(.read))
            #expect(isAllowed(.share, letters) == letters.contains(.share))
            #expect(!isAllowed(.leave, letters))
            #expect(!isAllowed(.remove(isRoot: true, isOwn: true), letters))
        }
    }

    @Test("changing needs w; R forbids content and L forbids depth, except for the root")
    func change() {
        for letters in Self.everySet {
            let writes = letters.contains(.write)
            #expect(isAllowed(.change(isRoot: true, depth: 0, hasContent: true), letters) == writes)
            let (content, depth) = (!letters.contains(.recordsOnly), !letters.contains(.leavesOnly))
            #expect(isAllowed(.change(isRoot: false, depth: 1, hasContent: false), letters) == writes)
            #expect(isAllowed(.change(isRoot: false, depth: 1, hasContent: true), letters) == (writes && content))
            #expect(isAllowed(.change(isRoot: false, depth: 2, hasContent: false), letters) == (writes && depth))
            #expect(
                isAllowed(.change(isRoot: false, depth: 2, hasContent: true), letters) == (writes && depth && content))
        }
    }

    @Test("creating needs w, W, or U for one child of the root; R and L bound it as they bound changes")
    func create() {
        for letters in Self.everySet {
            let (content, deep) = (!letters.contains(.recordsOnly), !letters.contains(.leavesOnly))
            let any = letters.contains(.write) || letters.contains(.writeOnce)
            for others in [0, 1] {
                let one = letters.contains(.oneChild) && others == 0
                let create = { (depth: Int, hasContent: Bool) in
                    isAllowed(.create(depth: depth, hasContent: hasContent, others: others), letters)
                }
                #expect(create(1, false) == (any || one))
                #expect(create(1, true) == ((any || one) && content))
                #expect(create(2, false) == (any && deep))
                #expect(create(2, true) == (any && deep && content))
            }
        }
    }

    @Test("removing needs w, or B for what the account has written itself")
    func remove() {
        for letters in Self.everySet {
            let writes = letters.contains(.write)
            #expect(isAllowed(.remove(isRoot: false, isOwn: false), letters) == writes)
            #expect(isAllowed(.remove(isRoot: false, isOwn: true), letters) == (writes || letters.contains(.burnOwn)))
        }
    }
}
