import ThicketTreeShape

/// Requests of a tree beside its socket. Each answer is a turn of the machine.
enum TreeRequests {
    static func post(_ id: BatchID, _ body: [UInt8], _ tree: isolated Treesystem) {
        let connection = tree.connection
        tree.batchTask = Task { [weak tree] in
            let reply = await connection.post(body)
            await tree?.feed { machine throws(TreeError) in try machine.batchAnswered(id, reply) }
        }
    }

    static func list(_ number: Int64, _ query: ChildrenQuery, _ tree: isolated Treesystem) {
        let connection = tree.connection
        Task { [weak tree] in
            let reply = await connection.children(query)
            await tree?.feed { machine throws(TreeError) in try machine.childrenListed(number, reply) }
        }
    }
}
